"""A scheduler's serving half, small enough to read: it assigns as a test says and keeps the worker's answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from tailrace.assembly.parts import WorkerSettings
from tailrace.assembly.processes import Child, spawn, stop
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.lease import LeaseSizes
from tailrace.model.workload import Ended, Extra, Kind, ref
from tailrace.runtime.config import WorkerConfig
from tailrace.runtime.worker import Worker
from tailrace.wire.channel import serve
from tailrace.wire.convert import KindWriter, read_outcomes, write_items
from tailrace.wire.scheduler import serve_scheduler
from tailrace.wire.session import Served
from tailrace.wire.stream import Stream
from tailrace.wire.v1 import scheduler_pb2 as pb

FUNCTIONS = str(Path(__file__).with_name("worker_functions.py"))
POOLS = str(Path(__file__).with_name("worker_pools.py"))
#: Heartbeat of tests with programs that functions start: its kill margin of 0.4 s is what they allow a machine that is
#: busy with others of them.
HEARTBEAT = 1.0
SIZES = LeaseSizes.of_heartbeat(HEARTBEAT)
PLACES = {"pid_alone": "isolated", "stuck_alone": "isolated", "spends_alone": "isolated", "pid_special": "special"}


class FakeScheduler:
    """One worker's session. `granting` is the lease it grants; None: it grants nothing."""

    def __init__(self, sizes: LeaseSizes) -> None:
        self.sizes = sizes
        self.granting: float | None = sizes.worker
        self.revoked: list[int] = []
        self.served: Served | None = None
        self.session = ""
        self.hellos: list[pb.Hello] = []
        self.pools: dict[str, pb.Pool] = {}
        self.ends: dict[int, Ended] = {}
        self.notes: dict[int, str] = {}
        self.carried: list[dict[str, int]] = []
        self.draining = False
        self.knows_session = True
        self.resumed = 0
        self.requests = 0
        self.changed = asyncio.Condition()
        self.address = ""
        self.others: list[FakeScheduler] = []
        self._frame = pb.WorkerReply()
        self._pending = False
        self._flight = 0
        self._kinds = KindWriter()
        self._calls: set[asyncio.Task[Any]] = set()
        self._server: Any = None

    async def start(self) -> None:
        register = serve_scheduler(self)  # type: ignore[arg-type]
        self._server, self.address = await serve(self.address or "127.0.0.1:0", [register])

    async def stop(self) -> None:
        await self._server.stop(0)

    async def attach_worker(self, connection: Stream) -> None:
        hello = await connection.receive()
        assert hello is not None
        known = hello.hello.session == self.session and self.knows_session
        if not known:
            self.session = hello.hello.session
            self.knows_session = True
            self.served = Served(self)
            self._kinds = KindWriter()
            self._flight = 0
            self._frame, self._pending = pb.WorkerReply(), False
        self.resumed += known
        self.hellos.append(hello.hello)
        self.pools |= {pool.name: pool for pool in hello.hello.pools}
        self.carried.append({each.function: each.count for each in hello.hello.carried})
        welcome = pb.WorkerReply(welcome=pb.Welcome(scheduler="fake", resumed=known, heartbeat=1, session=self.session))
        assert self.served is not None
        call = asyncio.current_task()
        assert call is not None
        self._calls.add(call)
        try:
            await self.served.serve(
                connection, hello, welcome, empty=pb.WorkerReply, silence=self.sizes.heartbeat * 4, clock=SYSTEM_CLOCK
            )
        finally:
            self._calls.discard(call)

    def cut(self) -> None:
        """Breaks the connection."""
        for call in self._calls:
            call.cancel()

    # the endpoint

    def opened(self, resumed: bool) -> None: ...

    def broken(self) -> None: ...

    def lost(self) -> None: ...

    def compose(self) -> pb.WorkerReply | None:
        if not self._pending:
            return None
        frame, self._frame, self._pending = self._frame, pb.WorkerReply(), False
        return frame

    def accept(self, frame: pb.WorkerFrame) -> None:
        outcomes = read_outcomes(frame.outcomes)
        for item in [*outcomes.succeeded, *outcomes.ended]:
            assert item not in self.ends, f"item {item} ended twice"
        self.ends.update(dict.fromkeys(outcomes.succeeded, Ended(1)))
        self.ends.update(outcomes.ended)
        self.notes.update({progress.ref: progress.note for progress in frame.progress})
        self.pools |= {pool.name: pool for pool in frame.pools}
        if frame.carried_changed:
            self.carried.append({each.function: each.count for each in frame.carried})
        self.draining = self.draining or frame.draining
        if frame.HasField("lease_request"):
            self.requests = frame.lease_request.number
            if self.granting is not None:
                grants = pb.LeaseGrants(request=self.requests, groups=[pb.GroupLease(group=7, lease=self.granting)])
                grants.revoked.extend(self.revoked)
                self._frame.grants.CopyFrom(grants)
                self._send()
        asyncio.ensure_future(self._tell())  # noqa: RUF006

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def _send(self) -> None:
        self._pending = True
        assert self.served is not None
        self.served.notify()

    # what tests say

    def assign(
        self,
        function: str,
        *arguments: dict[str, Any],
        extras: dict[int, Extra] | None = None,
        lease: float | None = None,
        group: int = 7,
        request: int | None = None,
        wants_result: bool = True,
        priority: int = 2,
    ) -> list[int]:
        """Assigns one flight and returns its refs."""
        self._flight += 1
        assign = self._frame.assigns.add(
            flight=self._flight,
            group=group,
            lease_request=self.requests if request is None else request,
            lease=self.sizes.worker if lease is None else lease,
            pool=PLACES.get(function, "default"),
        )
        count = len(arguments)
        assign.fence.extend(range(100, 100 + count))
        write_items(
            assign.items,
            self._kinds,
            (
                [Kind(function, priority, "some", "acme")] * count,
                [f"w{self._flight}.{index}" for index in range(count)],
                [json.dumps(one).encode() for one in arguments],
                [2] * count,
            ),
            extras or {},
        )
        assign.items.wants_result = wants_result
        self._send()
        return [ref(self._flight, index) for index in range(count)]

    def cancel(self, *refs: int) -> None:
        self._frame.cancel.extend(refs)
        self._send()

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits for news until something holds."""
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(true)

    async def ended(self, *refs: int) -> list[Ended]:
        """Waits for the ends of these items."""
        await self.until(lambda: all(item in self.ends for item in refs))
        return [self.ends[item] for item in refs]


class Journal:
    """The journal that functions wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def go(self) -> None:
        Path(f"{self.name}.go").touch()

    async def until(self, line: str, count: int = 1) -> None:
        """Waits until a function has written this line."""
        async with asyncio.timeout(30):
            while self.lines().count(line) < count:
                await asyncio.sleep(0.01)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


Start = Callable[..., Awaitable[tuple[FakeScheduler, Worker]]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts a worker attached to a fake scheduler; `pools`: also with functions that have processes of their own."""
    async with contextlib.AsyncExitStack() as stack:

        async def begin(
            heartbeat: float = 1.0,
            schedulers: int = 1,
            pools: bool = False,
            files: Sequence[str] = (),
            **settings: Any,
        ) -> tuple[FakeScheduler, Worker]:
            sizes = LeaseSizes.of_heartbeat(heartbeat)
            several = [FakeScheduler(sizes) for _ in range(schedulers)]
            for each in several:
                await each.start()
                stack.push_async_callback(each.stop)
            scheduler, *scheduler.others = several
            options = {"executors": 1, "isolated": 1, "slots": 50, "threads": 4, "name": "test"} | settings
            loaded = files or ([FUNCTIONS, POOLS] if pools else [FUNCTIONS])
            worker = Worker(WorkerConfig(**options), loaded, [each.address for each in several], None, sizes)
            stack.push_async_callback(worker.stop)
            await worker.start()
            await worker.attached()
            for each in several:
                await each.until(lambda each=each: each.requests > 0)
            return scheduler, worker

        yield begin


class Ticks:
    """The ticks of a program that a function started: when it last did something, and whether it still runs."""

    def __init__(self, journal: Any) -> None:
        self._name = journal.name
        self._file = Path(f"{journal.name}.ticks")

    def all(self) -> list[float]:
        text = self._file.read_text() if self._file.exists() else ""
        return [float(line) for line in text.splitlines() if line]

    def running(self) -> list[int]:
        """Processes, other than this one, with the journal among their arguments."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and int(folder.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if self._name.encode() in (folder / "cmdline").read_bytes():
                        found.append(int(folder.name))
        return found

    async def begun(self) -> None:
        async with asyncio.timeout(30):
            while len(self.all()) < 3:
                await asyncio.sleep(0.01)

    async def over(self, seconds: float = 30) -> None:
        async with asyncio.timeout(seconds):
            while self.running():
                await asyncio.sleep(0.01)


@pytest.fixture
def ticks(journal: Any) -> Iterator[Ticks]:
    ticks = Ticks(journal)
    yield ticks
    for pid in ticks.running():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


Apart = Callable[..., Awaitable[tuple[FakeScheduler, Child]]]


@pytest.fixture
async def apart() -> AsyncIterator[Apart]:
    """Starts a worker as a process of its own, as `tailrace up` does, attached to a fake scheduler. `stderr`: where it
    logs to; None: where the test does."""
    async with contextlib.AsyncExitStack() as stack:

        async def begin(stderr: IO[bytes] | None = None, **more: Any) -> tuple[FakeScheduler, Child]:
            scheduler = FakeScheduler(SIZES)
            await scheduler.start()
            stack.push_async_callback(scheduler.stop)
            changes = {"executors": 1, "suspects": 1, "slots": 10, "threads": 4, "name": "test", **more}
            to = (scheduler.address,)
            child = await spawn(
                WorkerSettings(modules=(FUNCTIONS,), schedulers=to, heartbeat=HEARTBEAT, changes=changes), stderr=stderr
            )
            stack.push_async_callback(stop, child, 0.0)
            await scheduler.until(lambda: scheduler.requests > 0)
            return scheduler, child

        yield begin
