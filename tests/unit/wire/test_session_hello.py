"""Names that a dialer gives its session: a hello that nobody answered may arrive long after the next one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tailrace.model.lease import LeaseSizes
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.wire.session import Dialer
from tailrace.wire.v1 import scheduler_pb2 as pb


class Far:
    """The other side: it answers the hellos whose number it was given, then hangs up. `knows`: a session that is to be
    resumed."""

    def __init__(
        self,
        answers: set[int],
        *,
        knows: bool = True,
        heartbeat: float = 0.0,
        leases: dict[str, float] | None = None,
    ) -> None:
        self.answers = answers
        self.heartbeat = heartbeat
        self.leases = leases
        self.knows = knows
        self.hellos: list[pb.Hello] = []
        self.heard = asyncio.Event()

    def open(self) -> Any:
        return Stream(self)


class Stream:
    def __init__(self, far: Far) -> None:
        self.far = far
        self.left: list[Any] = []

    async def send(self, message: Any) -> None:
        if message.HasField("hello"):
            self.far.hellos.append(message.hello)
            if len(self.far.hellos) in self.far.answers:
                hello, knows = message.hello, self.far.knows and message.hello.resume
                session = hello.session if knows else hello.anew or hello.session
                welcome = pb.Welcome(
                    scheduler="one",
                    resumed=knows,
                    session=session,
                    heartbeat=self.far.heartbeat,
                    leases=[pb.LeaseSize(name=name, size=size) for name, size in (self.far.leases or {}).items()],
                )
                self.left = [pb.WorkerReply(welcome=welcome)]
            self.far.heard.set()

    async def receive(self) -> Any:
        return self.left.pop(0) if self.left else None

    def cancel(self) -> None:
        """Cancels nothing: nothing goes on here."""


class End:
    """An endpoint with nothing to say."""

    def opened(self, resumed: bool) -> None: ...

    def compose(self) -> None:
        return None

    def accept(self, frame: Any) -> None: ...

    def broken(self) -> None: ...

    def lost(self) -> None: ...


async def test_a_session_that_was_not_welcomed_gets_another_name_and_one_that_was_keeps_it() -> None:
    # Given a dialer whose first two hellos are not answered
    far = Far({3, 4})
    dialer = Dialer(far.open, lambda hello: pb.WorkerFrame(hello=hello), End(), pb.WorkerFrame, silence=5.0)
    # When it says hello until it has been welcomed twice
    dialer.start()
    while len(far.hellos) < 4:
        far.heard.clear()
        await asyncio.wait_for(far.heard.wait(), 5.0)
    await dialer.close()
    # Then what comes late of the first two can begin nothing anew that the third one began
    names = [hello.session for hello in far.hellos]
    assert len(set(names[:3])) == 3
    assert names[3] == names[2]
    assert [hello.resume for hello in far.hellos[:4]] == [False, False, False, True]


async def test_each_hello_that_resumes_gives_the_session_another_name_for_the_case_that_it_is_not_known() -> None:
    # Given a dialer whose session began, and is forgotten while two hellos are not answered
    far = Far({1, 4}, knows=False)
    dialer = Dialer(far.open, lambda hello: pb.WorkerFrame(hello=hello), End(), pb.WorkerFrame, silence=5.0)
    # When it says hello until it was begun anew, and once more
    dialer.start()
    while len(far.hellos) < 5:
        far.heard.clear()
        await asyncio.wait_for(far.heard.wait(), 5.0)
    await dialer.close()
    # Then those that were not answered ask for other names than the one under which it goes on
    assert [hello.session for hello in far.hellos[1:4]] == [far.hellos[0].session] * 3
    assert len({hello.anew for hello in far.hellos[1:4]}) == 3
    assert far.hellos[4].session == far.hellos[3].anew


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        (LeaseSizes(), ""),
        (LeaseSizes.of_heartbeat(60.0), "heartbeat 60 there and 5 here, round_trip 24 there and 2 here"),
        (LeaseSizes(rho=0.001), "(rho 0.001 there and 0.01 here)"),
        (LeaseSizes(kill_margin=1.0), "(kill_margin 1 there and 2 here)"),
    ],
)
async def test_leases_that_do_not_fit_are_told_once(
    theirs: LeaseSizes, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a scheduler that names the sizes of its leases, and is lost again and again
    far = Far({1, 2, 3}, leases=theirs.by_name)
    await welcomed_thrice(far)
    # Then each size that is another one here is told, with what to do
    assert caplog.text.count("scheduler one has other leases than this part") == bool(told)
    assert told in caplog.text


@pytest.mark.parametrize(("theirs", "told"), [(5.0, False), (60.0, True), (0.0, False)])
async def test_a_heartbeat_is_compared_where_no_other_size_is_named(
    theirs: float, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a scheduler of the version before, Then of its leases the heartbeat alone is compared
    await welcomed_thrice(Far({1, 2, 3}, heartbeat=theirs))
    assert caplog.text.count("(heartbeat 60 there and 5 here)") == told
    assert ("other leases" in caplog.text) == told


async def welcomed_thrice(far: Far) -> None:
    """Dials with leases of the default sizes until it was welcomed three times."""
    dialer = Dialer(
        far.open, lambda hello: pb.WorkerFrame(hello=hello), End(), pb.WorkerFrame, silence=5.0, leases=LeaseSizes()
    )
    dialer.start()
    while len(far.hellos) < 3:
        far.heard.clear()
        await asyncio.wait_for(far.heard.wait(), 5.0)
    await dialer.close()


class Line:
    """A connection that brings a hello, and then nothing until it is over."""

    def __init__(self, hello: pb.Hello) -> None:
        self.said = [pb.WorkerFrame(hello=hello)]
        self.welcomed: asyncio.Future[pb.Welcome] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()

    async def receive(self) -> Any:
        if not self.said:
            await self.over.wait()
        return self.said.pop() if self.said else None

    async def send(self, message: Any) -> None:
        if message.HasField("welcome"):
            self.welcomed.set_result(message.welcome)


async def test_a_hello_that_comes_late_begins_nothing_that_the_next_one_resumes() -> None:
    # Given a scheduler that does not know a session any more
    server = SchedulerServer(SchedulerConfig(listen="127.0.0.1:0"), LeaseSizes())
    await server.start()
    try:
        # When a hello that its worker had given up comes at last, and then the one that it says now
        late = Line(pb.Hello(session="worker", resume=True, anew="late"))
        now = Line(pb.Hello(session="worker", resume=True, anew="now"))
        serving = [asyncio.create_task(server.attach_worker(late))]
        first = await asyncio.wait_for(late.welcomed, 5.0)
        serving.append(asyncio.create_task(server.attach_worker(now)))
        second = await asyncio.wait_for(now.welcomed, 5.0)
        # Then the worker is told that nothing is known of it, and how it is called from now on
        assert (first.resumed, first.session) == (False, "late")
        assert (second.resumed, second.session) == (False, "now")
        # And when it comes back under that name, then it goes on
        again = Line(pb.Hello(session="now", resume=True, anew="again"))
        serving.append(asyncio.create_task(server.attach_worker(again)))
        third = await asyncio.wait_for(again.welcomed, 5.0)
        assert (third.resumed, third.session) == (True, "now")
        for line in (late, now, again):
            line.over.set()
        await asyncio.gather(*serving, return_exceptions=True)  # one took the place of another
    finally:
        await server.stop()
