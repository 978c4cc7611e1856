"""The kinds of source: the built-in ones and those of the entry point group `tailrace.sources`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..model.did_you_mean import meant
from ..model.errors import ConfigError
from ..sdk.source import SourceKind
from ..stores.checkpoints.checkpoints import Checkpoints
from ..stores.control.control import Control
from ..stores.dead_letters.dead_letters import DeadLetters
from ..stores.drops.drops import Drops
from ..stores.heights import Heights
from ..stores.inventory.inventory import Inventory
from ..stores.ledger.ledger import Ledger
from ..stores.log.log import Log
from ..stores.ownership.ownership import Ownership
from ..stores.queue.queue import Queue
from ..stores.results.results import Results
from ..stores.schedules.schedules import Schedules
from ..stores.segments.segments import Segments
from ..stores.trusted_time import TrustedTime

GROUP = "tailrace.sources"

#: The kinds that come with tailrace, each with its place.
BUILT_IN = {
    kind: f"tailrace.tailers.sources.{kind}:KIND"
    for kind in ("directory", "due", "kafka", "log", "objects", "outbox", "queue", "redis_stream", "schedule")
}
#: Kinds that no file names: the platform makes their tailers.
INTERNAL = frozenset({"due"})
#: The extra that brings the client library of a kind, where it has another name.
EXTRAS = {"redis_stream": "redis"}


@dataclass(frozen=True, slots=True)
class Environment:
    """The stores of this process, embedded or remote. `delay_log` holds the delay service's streams (None: they are in
    `log`); `schedules`, `heights` and `control`, which has the registry of functions, may be None; `tailer` is the name
    of the tailer that is being built; `trusted` is the time by which old things go."""

    queue: Queue
    log: Log
    checkpoints: Checkpoints
    inventory: Inventory
    dead_letters: DeadLetters
    results: Results
    ownership: Ownership
    ledger: Ledger
    drops: Drops
    segments: Segments
    clock: Clock = SYSTEM_CLOCK
    tailer: str = ""
    delay_log: Log | None = None
    schedules: Schedules | None = None
    control: Control | None = None
    heights: Heights | None = None
    trusted: TrustedTime | None = None

    @property
    def due_log(self) -> Log:
        """The log that holds the due streams."""
        return self.log if self.delay_log is None else self.delay_log


@cache
def _installed() -> dict[str, EntryPoint]:
    """The kinds that other packages bring. The metadata of every installed package is read for them, once."""
    return {point.name: point for point in entry_points(group=GROUP)}


def kinds() -> list[str]:
    """The names of all kinds that a file may name, sorted."""
    return sorted({*BUILT_IN, *_installed()} - INTERNAL)


def kind_of(name: str) -> SourceKind:
    """The kind of this name. Raises ConfigError for an unknown kind (with the nearest known one), for a kind whose
    extra is not installed, and for one that cannot be loaded."""
    points = dict(_installed())
    if name in BUILT_IN:
        points[name] = EntryPoint(name, BUILT_IN[name], GROUP)
    if name not in points:
        raise ConfigError(f'source.kind: unknown kind "{name}": {meant(name, kinds())}')
    try:
        kind = points[name].load()
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'source.kind: "{name}" needs the Python package "{error.name}", which is not installed: '
            f"pip install 'tailrace[{EXTRAS.get(name, name)}]'"
        ) from error
    except (ImportError, AttributeError) as error:
        raise ConfigError(f'source.kind: "{name}" cannot be loaded from {points[name].value}: {error}') from error
    if not isinstance(kind, SourceKind):
        raise ConfigError(f'source.kind: "{name}": {points[name].value} is not a SourceKind')
    return kind
