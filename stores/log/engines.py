"""The engines that a log may have besides the embedded one: the values of `delay_log` in stores.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ..engines import EMBEDDED, Engines, StoreEngine
from .log import Log


class OpenLog(Log, Protocol):
    """A log that is reached through a connection of its own."""

    async def open(self) -> None:
        """Checks the server. Raises ConfigError for one that cannot be trusted with a log; one that cannot be reached
        now is checked at its next use."""

    async def close(self) -> None:
        """Closes its connections. Harmless when closed."""


#: An engine's `build` gets its options, a Clock, and `fleet`: the fleet of this process, empty where it has none. A log
#: of another fleet is refused.
LogEngine = StoreEngine[OpenLog]

ENGINES = Engines[OpenLog](
    {
        "kafka": "tailrace.stores.log.kafka:ENGINE",
        "redis": "tailrace.stores.log.redis:ENGINE",
    }
)


def mistakes_in(choice: Mapping[str, Any]) -> list[str]:
    """Mistakes in the name of a log's engine and in its options, as messages; empty: none."""
    return ENGINES.mistakes_in(choice)


def chosen_log(choice: Mapping[str, Any], clock: Clock = SYSTEM_CLOCK, fleet: str = "") -> OpenLog | None:
    """The log of a choice that has no mistakes; None: the embedded one."""
    return ENGINES.chosen(choice, clock, fleet=fleet)


__all__ = ["EMBEDDED", "LogEngine", "OpenLog", "chosen_log", "mistakes_in"]
