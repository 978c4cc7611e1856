"""The protocol of a source: the interface between a place where work rests and the pump that reads and settles it.

Two families, because sources differ in one thing only. A *queue* source settles each item; a
*stream* source has positions and a checkpoint. A source connects, reads and closes; reconnecting with back-off,
windows, pushing and settling are the pump's work (Benthos' division). A new source is one file with a `SourceKind`
named by an entry point in the group `tailrace.sources`, and passes `tailrace.testing.conformance`.

Optional powers of a stream source are the protocols `Dated`, `Ranged`, `Counted`, `Trimmed` and `TrimmedTogether`: a
source that has a method of one of them is called by it.
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
    """The capabilities of a source, as data. `validate` and the docs tell the cost of each missing one.

    rereads          an item can be read again by its position (held items release their payload)
    renews           a lease can be prolonged (functions may run longer than one lease)
    stable_identity  an item keeps its id across redelivery
    delays           an item can be returned with a delay
    timed            items come into being in the order of their positions, so a time can be searched for, or the source
                     finds it (`Dated`)
    holes            a position may never have held anything (compaction, markers); else it was lost to retention
    sparse           positions are far apart (they hold a time, say), so that what lies between them is never counted
    replays          `reread` and `ends` need no `open`, and find items settled long ago too: see `Rereader`
    places           it says in words where an item lies, without `open`: see `Placed`
    """

    rereads: bool = True
    renews: bool = True
    stable_identity: bool = True
    delays: bool = True
    holes: bool = False
    timed: bool = False
    sparse: bool = False
    replays: bool = False
    places: bool = False


@dataclass(slots=True)
class StreamBatch:
    """The records of one read of one partition: parallel lists, positions rising.

    times    wall clock seconds when each item came into being
    absent   positions that are passed, and noted
    lost     ranges that stop the tailer unless its file allows losses; no item in them was handed out
    refused  items that become dead letters, with the payload that they have here
    through  of a source with `holes`: each position below it that did not come holds nothing
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
    """A source with positions and a checkpoint. Every method may raise NotConnected: the pump then closes the source
    and opens it again. Any other error ends the pump, and another one is begun after a pause; a ConfigError is shown to
    operators as a fault that they must mend."""

    capabilities: Capabilities

    async def open(self, positions: Mapping[str, int]) -> None:
        """Connects and seeks each partition to its position (one not named: to its start). Harmless when open."""

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        """Returns the next items, at most `limit` and about `max_bytes` in all (at least one item), each position once
        per open. Waits up to `timeout` seconds for the first; an empty list: none came, or the source was closed."""

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        """Reads items again by their positions (capability `rereads`). Positions that are gone are in `absent`, or in
        `lost` when retention took them."""

    async def ends(self) -> dict[str, int]:
        """The position that the next item of each partition will get, by partition: the measure of lag."""

    async def close(self) -> None:
        """Ends a pending read. Harmless when closed."""


class PartitionSource(StreamSource, Protocol):
    """One partition of a shared source. Every method raises NotConnected while this process does not have it."""

    async def begin(self) -> int:
        """The position where reading begins without a checkpoint. It is made durable before anything is read."""

    async def settled_below(self, partition: str, position: int) -> None:
        """Learns that the checkpoint has passed everything below `position`, and may tell others (a consumer group)."""


class SharedSource(Protocol):
    """A stream whose partitions a coordinator elsewhere (a consumer group) shares out among its readers, so that they
    come and go.

    The coordinator says who should read a partition; the row of ownership says who may. So a partition that is taken
    away is read no further, its items that are out end, and its row is released; the next reader waits for that.

    release_within  seconds that items that are out may take to end when a partition is taken away
    problem         why the coordinator cannot be reached now, while the source still tries; empty when it can
    """

    capabilities: Capabilities
    release_within: float
    problem: str

    async def open(self) -> None:
        """Connects and asks for a share. Harmless when open. Raises NotConnected."""

    async def changed(self, known: frozenset[str]) -> frozenset[str]:
        """Waits until this process' share differs from the partitions `known`, and returns it. Raises NotConnected when
        the connection is gone: the source is then closed and opened again, and the old share holds until the new one
        is known."""

    def partition(self, name: str) -> PartitionSource:
        """A partition as a source."""

    async def close(self) -> None:
        """Gives the share back, and ends pending calls. Harmless when closed."""


class Rereader(Protocol):
    """The reader of a replay: a stream source that nobody opens, so that it disturbs no other reader. Every method may
    raise NotConnected, and may then be called again."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the source, `replays` and `rereads` among them."""

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        """Reads items again by their positions, like `StreamSource.reread`."""

    async def ends(self) -> dict[str, int]:
        """The position that the next item of each partition will get, like `StreamSource.ends`."""

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""


@runtime_checkable
class Dated(Protocol):
    """A source that finds the position of a time by itself."""

    async def position_at(self, partition: str, time: float) -> int:
        """The first position whose item came into being at `time` (wall clock seconds) or later; the end if there is
        none."""


@runtime_checkable
class Ranged(Protocol):
    """A source whose positions are far apart, so that nobody can name those of a range."""

    async def between(self, partition: str, first: int, last: int, limit: int) -> StreamBatch:
        """Reads the first items from `first` to `last`, both included: `limit` at most; none: there are no more."""


@runtime_checkable
class Counted(Protocol):
    """A stream source whose positions are far apart and that can say all the same how many items are left."""

    async def behind(self, positions: Mapping[str, int]) -> int:
        """Number of items from these positions on, about, in all partitions together; -1: unknown."""


class Placed(Protocol):
    """A stream source that says in words where its items lie, for their dead letters (capability `places`)."""

    async def places(self, partition: str, positions: Sequence[int]) -> dict[int, str]:
        """The places of these items, as far as they are known, and only for items that bear none in the reason for
        which they were refused. It takes some seconds at most, however many they are."""


@runtime_checkable
class Trimmed(Protocol):
    """A stream source that is told how far its checkpoint is, to delete settled items or to tell others."""

    async def settled_below(self, partition: str, position: int) -> None:
        """Learns that the checkpoint has durably passed everything below `position`, from an owner that still owned the
        partition. Called about once a second while the checkpoint moves, and again after each `open` and after a call
        that raised Unavailable."""


@runtime_checkable
class TrimmedTogether(Protocol):
    """A Trimmed source that takes the checkpoints of many partitions in one call, and is called in this way only."""

    async def settled_below_each(self, positions: Mapping[str, int]) -> None:
        """Learns the checkpoints of these partitions, as `settled_below` does of one."""


class QueueSource(Protocol):
    """A source whose items are claimed, renewed and settled one by one. Every method may raise NotConnected.

    `lease`, `renew` and `settle` keep the contract of `stores.queue.queue.Queue`.
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
        """Number of items that wait: the measure of lag; -1 when the source cannot tell."""

    async def due(self) -> dict[str, int]:
        """Number of items that could be claimed now, by function; at most some thousands of each are counted."""

    async def close(self) -> None:
        """Ends a pending lease call. Harmless when closed."""


@runtime_checkable
class ResultSource(Protocol):
    """A QueueSource with items of jobs, whose results travel with their settlements."""

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        """Settles like `settle`. The answer also has the items that failed, as no item can be made of their results."""


@runtime_checkable
class ReorderingSource(Protocol):
    """A QueueSource that can have one item go before others, for a retry that is to be the probe of a function."""

    async def put_first(self, id: str, before: float) -> None:
        """Has a waiting item go before all that were due at that time or later (wall clock). Harmless for another."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source as the registry knows it.

    name      the word in `source: {kind: …}`
    family    queue | stream | relay (its items go to the platform's own queue)
    options   a pydantic model of the other keys under `source`
    build     (options, environment) → the source; `environment` names the stores this process has
    extra     the pip extra that brings its client library; empty: none
    retention whether it deletes items after a time, done or not
    shared    whether `build` gives a SharedSource
    reader    (options, environment) → the Rereader of a replay; None: the source itself, if it `replays`
    not_again why a source of the kind cannot replay, and what to do instead; empty: it can
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
