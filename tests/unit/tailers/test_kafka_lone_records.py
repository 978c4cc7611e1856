"""A lone record from Kafka wakes nobody who has nothing to do with it."""

from __future__ import annotations

import asyncio
from typing import Any

from tailrace.model.errors import NotConnected
from tailrace.stores.log.log import Records
from tailrace.tailers.sources.kafka import KafkaSourceOptions
from tailrace.tailers.sources.kafka_member import Polled
from tailrace.tailers.sources.kafka_python_member import skip_known_coordinator
from tailrace.tailers.sources.kafka_session import KafkaSession

PLACE = ("orders", 0)
NOTHING = Records([], [], [], [], [])


class Member:
    """A member whose polls bring the records that a test puts there."""

    def __init__(self) -> None:
        self.polls: list[list[Polled]] = []

    def poll(self, seconds: float) -> list[Polled]:
        return self.polls.pop(0) if self.polls else []

    def assigned(self) -> tuple[set[Any], set[Any]]:
        return {PLACE}, set()

    def seek(self, place: Any, position: int) -> None: ...

    def pause(self, places: Any) -> None: ...

    resume = pause


class Tailer:
    def __init__(self) -> None:
        self.through: list[int] = []

    def arrived(self, session: Any, polled: list[tuple[Polled, int]]) -> None:
        self.through += [each.through for each, _ in polled]

    def assigned(self, session: Any, share: Any) -> None: ...

    def failed(self, session: Any, why: str, places: Any) -> None:
        raise NotConnected(why)


async def test_that_there_are_no_more_is_no_news_and_that_positions_hold_nothing_is() -> None:
    # Given a partition that is read from 5 on
    member, tailer = Member(), Tailer()
    session = KafkaSession(KafkaSourceOptions(topic="orders", group="g"), tailer, "tailrace")
    session._turn(member)  # type: ignore[arg-type]
    session.seek(member, PLACE, 5, 1)  # type: ignore[arg-type]
    # When a record comes, its end is told twice, and a marker is passed
    record = Polled(PLACE, Records([5], [0.0], [""], [()], [b"x"]), [True], 6)
    end, passed = Polled(PLACE, NOTHING, [], 6), Polled(PLACE, NOTHING, [], 7)
    member.polls = [[end._replace(through=5)], [record], [end], [end], [passed]]
    for _ in range(6):
        session._turn(member)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    # Then the loop hears of the record and of what was passed
    assert tailer.through == [6, 7]


def test_a_coordinator_that_is_known_and_connected_is_not_asked_for() -> None:
    class Coordinator:
        coordinator_id: str | None = None
        asked = 0
        down: frozenset[str] = frozenset()
        _client: Any = None

        def connected(self, node: str) -> bool:
            return node not in self.down

        def ensure_coordinator_ready(self, timeout_ms: float | None = None) -> bool:
            self.asked += 1
            return timeout_ms != 0

    coordinator = Coordinator()
    coordinator._client = coordinator
    skip_known_coordinator(coordinator)
    assert coordinator.ensure_coordinator_ready(5) and not coordinator.ensure_coordinator_ready(0)
    assert coordinator.asked == 2, "it is not known"
    coordinator.coordinator_id = "one"
    assert coordinator.ensure_coordinator_ready(0) and coordinator.asked == 2
    coordinator.down = frozenset({"one"})
    assert coordinator.ensure_coordinator_ready(5) and coordinator.asked == 3
