"""Calls with named fields: values arrive as they were sent, and two versions understand each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, get_type_hints

import msgspec
import pytest

from tailrace.model.alert import Alert, Backlog, LevelOverview
from tailrace.model.audit import Audit
from tailrace.model.dead_letter import DeadLetter, Death, LetterFilter, Past
from tailrace.model.drop import Cause, Drop, DropRow
from tailrace.model.errors import InvalidRequest
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota
from tailrace.model.overview import Overview, ReplayOverview, SpoolOverview, TailerOverview
from tailrace.model.replay import Bound, ReplayOrder
from tailrace.model.seek import Move, Seek
from tailrace.model.tries import Try
from tailrace.model.workload import Kind
from tailrace.wire.channel import serve
from tailrace.wire.named_fields import form, made, named, plain
from tailrace.wire.operators import LONGER, PORTS
from tailrace.wire.ports.letters import LetterCount, LetterCounts, LetterPage, Redriven, RedriveStep
from tailrace.wire.ports.replays import ReplayView, StretchView
from tailrace.wire.stores import StoreClient, StoresService, methods, remote

PAST = Past("orders", "first", 1.0, 2, (Death(1.5, "fatal", "é", 3, 1, "half"), Death(2.5, "fatal", "", 0, 0)))
LETTER = DeadLetter(
    "id",
    "orders",
    Kind("add", 2, "nightly", "acme"),
    b"\x00\xff",
    "fatal",
    "why",
    3,
    1,
    1.0,
    2.0,
    headers=(("a", "b"),),
    position=7,
    past=PAST,
    tries=(Try(0.1 + 0.2, "retry", 'said "é"'),),
    number=9,
)
VIEW = ReplayView(
    1,
    "t",
    "t@replay-1",
    "running",
    -1,
    {"dead": 2},
    "",
    "all",
    0.5,
    "",
    "",
    "",
    1.0,
    0.0,
    [StretchView("0", 1, 9, 8, 0, 2)],
)
SENT: list[tuple[Any, Any]] = [
    (Gate, Gate("add", "", "drop", "ann", "why", 1.5, 3)),
    (Quota, Quota("add", 5, rate=0.5)),
    (LetterFilter, LetterFilter(ids=("a", "b"), since=1.5)),
    (DeadLetter, LETTER),
    (LetterPage, LetterPage([LETTER], 1)),
    (LetterCounts, LetterCounts([LetterCount("add", 3, 1, True)], 5)),
    (RedriveStep, RedriveStep([Redriven("a", "add", refused="no")], 4)),
    (Seek, Seek("t", 1 << 62)),
    (list[Move], [Move("0", 1, 5, 4)]),
    (list[Audit], [Audit("t", "0", 0, 9, {"dead": 9}, [3], faults=["odd"], items=None)]),
    (list[DropRow], [DropRow("t", "0", Drop(1, 2, 2, Cause.SEEK, why="moved"))]),
    (ReplayOrder, ReplayOrder("t", Bound(edge="start"), Bound(position=5), partition="0")),
    (list[ReplayView], [VIEW]),
    (tuple[int, int] | None, (3, 9)),
    (dict[str, int], {"add": 2}),
    (
        Overview,
        Overview(
            {"new": 1},
            [TailerOverview("t", "log", "running", classes={"dead": 1})],
            spool=SpoolOverview("filling", 3),
            replays=[ReplayOverview("t@replay-1", "t", "running")],
            levels=[LevelOverview("interactive", 1.5)],
            backlogs=[Backlog("t", 5)],
            alerts=[Alert("clogged", "t", 1.0, "it is", "look")],
        ),
    ),
]


@pytest.mark.parametrize(("hint", "value"), SENT, ids=[str(hint) for hint, _ in SENT])
def test_a_value_crosses_as_itself(hint: Any, value: Any) -> None:
    packed = msgspec.msgpack.encode(plain(value))
    assert made(msgspec.msgpack.decode(packed, type=form(hint))) == value


def test_what_the_ports_carry_can_be_written() -> None:
    for port in PORTS.values():
        for method in methods(port).values():
            assert named(method).name == method.__name__
            assert set(named(method).arguments.__struct_fields__) == set(get_type_hints(method)) - {"return"}


def test_ports_have_few_methods_and_no_name_twice() -> None:
    names = Counter(name for port in PORTS.values() for name in methods(port))
    assert names.most_common(1)[0][1] == 1
    assert max(len(methods(port)) for port in PORTS.values()) <= 8
    assert set(LONGER) <= set(names)


# Two versions of one port: the later one has a field more in each record, and one more argument.


class OldMove(NamedTuple):
    to: int


@dataclass(frozen=True)
class OldReport:
    moves: list[OldMove]


class OldPort(Protocol):
    async def move(self, move: OldMove) -> OldReport: ...


class NewMove(NamedTuple):
    to: int
    why: str = "nobody said"


@dataclass(frozen=True)
class NewReport:
    moves: list[NewMove]
    warnings: list[str] = field(default_factory=list)


class NewPort(Protocol):
    async def move(self, move: NewMove, dry_run: bool = False) -> NewReport: ...


class OldDesk:
    async def move(self, move: OldMove) -> OldReport:
        return OldReport([move])


class NewDesk:
    async def move(self, move: NewMove, dry_run: bool = False) -> NewReport:
        return NewReport([move], ["dry"] if dry_run else [])


class OldClient(StoreClient):
    move = remote(OldPort.move, named)


class NewClient(StoreClient):
    move = remote(NewPort.move, named)


@asynccontextmanager
async def serving(protocol: type[Any], desk: object) -> AsyncIterator[str]:
    server, address = await serve("127.0.0.1:0", [StoresService({"desk": (protocol, desk)}, named).register])
    try:
        yield address
    finally:
        await server.stop(0)


async def test_an_older_client_understands_a_newer_server() -> None:
    async with serving(NewPort, NewDesk()) as address, OldClient(address, "desk") as client:
        assert await client.move(OldMove(3)) == OldReport([OldMove(3)])


async def test_a_newer_client_understands_an_older_server() -> None:
    async with serving(OldPort, OldDesk()) as address, NewClient(address, "desk") as client:
        assert await client.move(NewMove(3, "said"), dry_run=True) == NewReport([NewMove(3)])


async def test_a_newer_server_knows_what_its_own_client_says() -> None:
    async with serving(NewPort, NewDesk()) as address, NewClient(address, "desk") as client:
        assert await client.move(NewMove(3, "said"), dry_run=True) == NewReport([NewMove(3, "said")], ["dry"])


@pytest.mark.parametrize(
    "sent",
    [{}, {"move": {}}, {"move": {"to": "3"}}, {"move": {"to": 1.5}}, {"move": [3]}, {"move": None}, [3]],
    ids=str,
)
async def test_what_does_not_fit_is_refused(sent: Any) -> None:
    async with serving(OldPort, OldDesk()) as address, OldClient(address, "desk") as client:
        signature = named(OldPort.move)
        with pytest.raises(InvalidRequest, match=r"desk\.move: "):
            await client.invoke(signature, sent)
