"""The protocol of a source: the seam between where work rests and the one pump that drives them all.

Two families, because sources differ in one thing only. A *queue* source settles each item; a
*stream* source has positions and a checkpoint. A source connects, reads and closes; reconnecting with back-off,
windows, pushing and settling are the pump's work (Benthos' division). A new source is one file with a `SourceKind`
named by an entry point in the group `tailrace.sources`, and passes `tailrace.testing.conformance`.

What a stream source can do beside that it says by having the methods of `Dated`, `Ranged`, `Counted`, `Trimmed` and
`TrimmedTogether`: one that has a method of such a name is called by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..model.claim import Leased, Renewed, ResultSettlement, Settle, State
from ..model.demand import Demand
from ..model.workload import Headers


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a source, as data; `validate` and the docs say what a missing power costs.

    rereads          an item can be read again by its position (held items release their payload)
    renews           a lease can be prolonged (functions may run longer than one lease)
    stable_identity  an item keeps its id across redelivery
    delays           an item can be returned with a delay
    timed            items come into being in the order of their positions, so a time can be searched for, or the source
                     finds it (`Dated`)
    holes            a position may never have held anything (compaction, markers); else it was lost to retention
    sparse           positions are far apart (they hold a time, say), so that what lies between them is never counted
    replays          `reread` and `ends` need no `open`, and find what was settled long ago too: see `Rereader`
    """

    rereads: bool = True
    renews: bool = True
    stable_identity: bool = True
    delays: bool = True
    holes: bool = False
    timed: bool = False
    sparse: bool = False
    replays: bool = False


@dataclass(slots=True)
class StreamBatch:
    """The records of one read of one partition: parallel lists, positions rising.

    `times` are wall clock seconds of when each item came into being. What is absent is passed, and noted. What was lost
    stops the tailer unless its file allows that; nothing in it was handed out. What is refused becomes a dead letter,
    with the payload that it has here. Where positions may have holes, what is below `through` and did not come holds
    nothing.
    """

    partition: str
    positions: list[int]
    times: list[float]
    keys: list[str]
    headers: list[Headers]
    payloads: list[bytes]
    absent: list[int] = field(default_factory=list)  # positions that hold nothing, or whose item its owner took away
    lost: list[tuple[int, int]] = field(default_factory=list)  # ranges, first to last, that retention took; rising
    lost_items: int = 0  # how many items were in them, about, where positions are sparse
    refused: dict[int, str] = field(default_factory=dict)  # by index: why an item cannot be handed out as it is
    through: int = 0


class StreamSource(Protocol):
    """Positions and a checkpoint. All methods may raise NotConnected; then the pump closes and opens again. With any
    other error it ends, and another one is begun after a pause; ConfigError is shown as what somebody must mend."""

    capabilities: Capabilities

    async def open(self, positions: Mapping[str, int]) -> None:
        """Connects and seeks each partition to its position (one not named: its start). Harmless when open."""

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        """The next items, at most `limit` and about `max_bytes` in all (at least one item), each position once per
        open. Waits up to `timeout` seconds for the first; an empty list: nothing came, or the source was closed."""

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        """Items by position, again (capability `rereads`); those gone are in `absent`, or in `lost` when retention
        took them."""

    async def ends(self) -> dict[str, int]:
        """For each partition the position that its next item will get: the measure of lag."""

    async def close(self) -> None:
        """Ends a pending read. Harmless when closed."""


class PartitionSource(StreamSource, Protocol):
    """One partition of a shared source. All raise NotConnected while it is not this process' share."""

    async def begin(self) -> int:
        """Where reading begins when there is no checkpoint. It is made durable before anything is read."""

    async def settled_below(self, partition: str, position: int) -> None:
        """The checkpoint has passed everything below: whoever else wants to know (a group) may be told."""


class SharedSource(Protocol):
    """A stream whose partitions are handed out, by somebody else, to all that read it: they come and go.

    It says who should read a partition; the ownership row says who may. So a partition that is taken away is read no
    further, what is out ends, and its row is released; whoever gets it waits for that.

    release_within  seconds that what is out may take to end when a partition is taken away
    problem  why it cannot be reached now, while it still goes on by itself; empty when it can
    """

    capabilities: Capabilities
    release_within: float
    problem: str

    async def open(self) -> None:
        """Connects and asks for a share. Harmless when open. Raises NotConnected."""

    async def changed(self, known: frozenset[str]) -> frozenset[str]:
        """The partitions that are this process' share, when they are not those `known`. Raises NotConnected when the
        connection is gone; then it is closed and opened again, and the share stays what it was until it is known."""

    def partition(self, name: str) -> PartitionSource:
        """A partition as a source."""

    async def close(self) -> None:
        """Gives the share back. Ends what is pending. Harmless when closed."""


class Rereader(Protocol):
    """The reader of a replay: a stream source that nobody opens, so that it disturbs no other reader. All raise
    NotConnected, and may be called again."""

    @property
    def capabilities(self) -> Capabilities:
        """With `replays` and `rereads`."""

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        """As a StreamSource's."""

    async def ends(self) -> dict[str, int]:
        """As a StreamSource's."""

    async def close(self) -> None:
        """Lets go of connections. Harmless when closed."""


@runtime_checkable
class Dated(Protocol):
    """A source that finds the position of a time by itself."""

    async def position_at(self, partition: str, time: float) -> int:
        """The first position whose item came into being at `time` (wall clock seconds) or later; the end if none
        did."""


@runtime_checkable
class Ranged(Protocol):
    """A source whose positions are far apart, so that nobody can name those of a range."""

    async def between(self, partition: str, first: int, last: int, limit: int) -> StreamBatch:
        """The first items from `first` to `last`, both included: `limit` at most; none: there are no more."""


@runtime_checkable
class Counted(Protocol):
    """A stream source whose positions are far apart and that can say all the same how many items are left."""

    async def behind(self, positions: Mapping[str, int]) -> int:
        """How many items there are from these positions on, all partitions together, about; -1: it cannot say."""


@runtime_checkable
class Trimmed(Protocol):
    """A stream source that wants to know what its checkpoint has passed, since it forgets that, or tells others."""

    async def settled_below(self, partition: str, position: int) -> None:
        """The checkpoint has durably passed everything below, and its owner is one still. Told about once a second
        while something new is passed, and again after each `open` and where this raised Unavailable."""


@runtime_checkable
class TrimmedTogether(Protocol):
    """A Trimmed source that hears of many partitions at once; then it is told this way only."""

    async def settled_below_each(self, positions: Mapping[str, int]) -> None:
        """The same of each of these partitions."""


class QueueSource(Protocol):
    """Each item is claimed, renewed and settled by itself. All methods may raise NotConnected.

    `lease`, `renew` and `settle` mean what they mean in `stores.queue.queue.Queue`.
    """

    capabilities: Capabilities

    async def open(self) -> None:
        """Connects. Harmless when open."""

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        """Claims due items within `demand`; waits up to `wait` seconds for the first one. None: nothing was due."""

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        """Prolongs the leases of one claim's items that are still out."""

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        """Ends hand-outs of one claim; returns the ids refused as stale. Repeating a settlement is harmless."""

    async def waiting(self) -> int:
        """How many items wait: the measure of lag; -1 when the source cannot tell."""

    async def due(self) -> dict[str, int]:
        """How many items could be claimed now, by function; at most some thousands of each are counted."""

    async def close(self) -> None:
        """Ends a pending lease call. Harmless when closed."""


@runtime_checkable
class ResultSource(Protocol):
    """A QueueSource some of whose items are items of jobs, whose results travel with their settlements."""

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        """As `settle`, and which of them failed since no other item can be made of their results."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source as the registry knows it.

    name      what `source: {kind: …}` says
    family    queue | stream | relay (what it has goes to the platform's own queue)
    options   a pydantic model of the other keys under `source`
    build     (options, environment) → the source; `environment` names the stores this process has
    extra     the pip extra that brings its client library; empty: none
    retention whether it forgets items after a time, done or not
    shared    whether `build` gives a SharedSource
    reader    (options, environment) → what a replay reads by; None: what `build` gives, where it `replays`
    not_again where a source of the kind cannot replay: why, and what to do instead
    """

    name: str
    family: str
    options: type[Any]
    build: Callable[[Any, Any], Any]
    capabilities: Capabilities
    extra: str = ""
    description: str = ""
    retention: bool = False
    shared: bool = False
    reader: Callable[[Any, Any], Rereader] | None = None
    not_again: str = ""


__all__ = [
    "Capabilities",
    "Counted",
    "Dated",
    "PartitionSource",
    "QueueSource",
    "Ranged",
    "Rereader",
    "ResultSource",
    "SharedSource",
    "SourceKind",
    "StreamBatch",
    "StreamSource",
    "Trimmed",
    "TrimmedTogether",
]
