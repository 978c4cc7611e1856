"""The engines that a log may have besides the embedded one: what `delay_log` in stores.yaml may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ..engines import EMBEDDED, Engines, StoreEngine
from .log import Log


class OpenLog(Log, Protocol):
    """A log that is reached through a connection of its own."""

    async def open(self) -> None:
        """Looks at the server. Raises ConfigError for one that cannot be trusted with a log; one that cannot be reached
        now is tried again at each use."""

    async def close(self) -> None:
        """Closes what it has open. Harmless when closed."""


#: Made of its options, a Clock, and `fleet`: that of this process, empty where it has none. A log of another fleet is
#: refused.
LogEngine = StoreEngine[OpenLog]

ENGINES = Engines[OpenLog](
    {
        "kafka": "tailrace.stores.log.kafka:ENGINE",
        "redis": "tailrace.stores.log.redis:ENGINE",
    }
)


def mistakes_in(choice: Mapping[str, Any]) -> list[str]:
    """What is wrong with an engine's name and its options."""
    return ENGINES.mistakes_in(choice)


def chosen_log(choice: Mapping[str, Any], clock: Clock = SYSTEM_CLOCK, fleet: str = "") -> OpenLog | None:
    """The log of a choice that has no mistakes; None: the embedded one."""
    return ENGINES.chosen(choice, clock, fleet=fleet)


__all__ = ["EMBEDDED", "LogEngine", "OpenLog", "chosen_log", "mistakes_in"]
