"""Resources that all tailers of a process share, such as the port to the delay service; and the setup of each pump."""

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
    """A place where failed stream items wait until their next attempt is due: the delay service."""

    async def park(self, items: Sequence[Parked]) -> None:
        """Stores the items durably before it returns; safe to repeat. Raises Unavailable."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources shared by the tailers of a process.

    scheduler   the address at which the scheduler listens
    parking     takes items that failed for now
    origin      finds the configuration of the tailer from which a parked item first came
    row_cache   ledger rows of items that were parked here
    duties      hear of errors that a tailer cannot handle itself
    elsewhere   the tailers that belong to another process of the fleet, each with that process's place
    """

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
        """The clock that everything in a tailer uses."""
        return self.environment.clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Resources):
    """The resources of one pump, with its tailer's configuration. `row` names the part of the source that it owns;
    empty: all of it."""

    config: TailerConfig
    kind: SourceKind
    row: str = ""
