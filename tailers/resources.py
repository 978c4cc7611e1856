"""Resources that all tailers of a process work with, among them the port to the delay service; and the setup of each
pump."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.lease import LeaseSizes
from ..model.parked import Parked
from ..sdk.source import SourceKind
from .config import TailerConfig
from .ledger.row_cache import RowCache
from .registry import Environment


class Parking(Protocol):
    """A place where stream items that failed for now wait until they are due."""

    async def park(self, items: Sequence[Parked]) -> None:
        """Durable when it returns; safe to repeat. Raises Unavailable."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources shared by the tailers of a process. `scheduler`: where it listens; `parking` takes what fails; `origin`
    finds the configuration of the tailer that a parked item first came from; `row_cache` has rows of what was parked
    here; `duties` hear of what fails beyond a tailer's own handling; `elsewhere` are the tailers that belong to another
    process of the fleet, and where that is."""

    environment: Environment
    scheduler: str
    parking: Parking
    sizes: LeaseSizes
    origin: Callable[[str], TailerConfig | None] = lambda name: None
    row_cache: RowCache = field(default_factory=RowCache)
    duties: Duties = field(default_factory=lambda: Duties("a tailer"))
    elsewhere: dict[str, str] = field(default_factory=dict)

    @property
    def clock(self) -> Clock:
        """The clock of everything in a tailer."""
        return self.environment.clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Resources):
    """The resources of one pump, with its tailer's configuration. `row` is the part of the source that it owns; empty:
    all of it."""

    config: TailerConfig
    kind: SourceKind
    row: str = ""
