"""A queue on a server, under a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from tailrace.stores.config import StoresConfig
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.queue import MAX_PAYLOAD

#: For the model: a story on a server costs more than one in a file.
MODEL_ON_A_SERVER = settings(
    max_examples=8,
    stateful_step_count=30,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
#: For the long runs: steps that come together once in some hundred stories.
AT_LENGTH = settings(MODEL_ON_A_SERVER, max_examples=100, stateful_step_count=50)


class ServedQueue:
    """A queue on a server. `engine` makes the queue of its options, a configuration, a clock and the store's time in
    microseconds."""

    def __init__(self, engine: Callable[..., Any], options: Any, **config: Any) -> None:
        self.options = options
        self._engine = engine
        self._config = StoresConfig(max_payload=MAX_PAYLOAD, **config)
        self._clock = ManualClock()

    async def open(self) -> None:
        self.queue = self._engine(self.options, self._config, self._clock, store_time=lambda: int(self.now() * 1e6))
        await self.queue.open()

    async def close(self) -> None:
        await self.queue.close()

    def now(self) -> float:
        return self._clock.wall()

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def jump(self, seconds: float) -> None:
        self._clock.jump(seconds)

    async def reopen(self) -> None:
        await self.queue.close()
        await self.open()
