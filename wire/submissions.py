"""Submissions between processes of one machine without gRPC: one stream for all calls of a client, over a plain socket.

Most of the cost of a single submission, before it is stored, is gRPC's own (`direct.py`). So a client whose gateway is
on loopback asks with its next submission for a direct way, and is told a name under which the gateway listens. Names
are random and of one machine's kernel: a client that was told one by a gateway beyond a tunnel, or out of a container,
finds nobody there and goes on with gRPC, as every client does when the stream ends.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.lifecycle import cancel, end_all
from ..model.address import read_address
from ..model.errors import NotConnected, Overloaded, TailraceError
from .carriers import dial_streams
from .channel import NETWORK
from .direct import NAMED
from .statuses import MESSAGE_LENGTH, error_named
from .stream import DialedStream, Stream, StreamClosed, StreamMethod
from .v1 import gateway_pb2 as pb

SUBMISSIONS = StreamMethod("/tailrace.v1.Gateway/Submissions", pb.NumberedSubmit, pb.NumberedAnswer)
#: Calls of one stream that are being answered; more wait unread.
AT_ONCE = 1000
#: Answers of one stream that were made and not read; at so many no more calls of its client are read.
UNREAD = 256
#: Seconds until a client asks for a name again whose stream ended or was never connected.
PAUSE = 10.0

_LOG = logging.getLogger("tailrace.wire.gateway")


def possible() -> bool:
    """Whether this system has names of this kind (Linux), and real sockets."""
    return sys.platform == "linux" and NETWORK.get() is None


def new_name() -> str:
    """Makes an address that nobody can guess."""
    return f"{NAMED}tailrace-{secrets.token_hex(16)}"


# The gateway's half.


async def answer_submissions(submit: Callable[[pb.SubmitRequest], Awaitable[pb.SubmitReply]], stream: Stream) -> None:
    """Answers each call of a stream until it ends."""
    room = asyncio.Semaphore(AT_ONCE)
    running: set[asyncio.Task[None]] = set()
    unread, taken = 0, asyncio.Event()

    async def answer(call: pb.NumberedSubmit) -> None:
        nonlocal unread
        try:
            made = await answered(call)
            del call  # it may be large, and its client slow to read
            unread += 1
            try:
                await stream.send(made)
            finally:
                unread -= 1
                taken.set()
        except StreamClosed:
            pass  # the client is gone
        finally:
            room.release()

    async def answered(call: pb.NumberedSubmit) -> pb.NumberedAnswer:
        try:
            answer = pb.NumberedAnswer(number=call.number, reply=await submit(call.request))
        except TailraceError as error:
            answer = pb.NumberedAnswer(number=call.number, refusal=_refusal(error))
        except Exception as error:
            _LOG.exception("the gateway failed at a submission")
            what = f"the gateway failed: {type(error).__name__}: {error}; see its log"
            answer = pb.NumberedAnswer(number=call.number, refusal=_refusal(TailraceError(what)))
        return answer

    try:
        while (call := await stream.receive()) is not None:
            if not call.HasField("request"):
                await stream.send(pb.NumberedAnswer(number=call.number))
                continue
            while unread >= UNREAD:
                taken.clear()
                await taken.wait()
            await room.acquire()
            task = asyncio.create_task(answer(call), name="gateway: a submission")
            running.add(task)
            task.add_done_callback(running.discard)
    finally:
        await end_all(running)


def _refusal(error: TailraceError) -> pb.Refusal:
    made = pb.Refusal(error=type(error).__name__, message=str(error)[:MESSAGE_LENGTH])
    if isinstance(error, Overloaded):
        made.retry_after, made.of_tenant = error.retry_after, error.of_tenant
    return made


# The client's half.


class Unsent(NotConnected):
    """The stream ended before any part of a call was sent: the call may be made in another way."""


class Submissions:
    """A client's stream to one gateway, for the event loop that it is first used in. `open`: calls may go this way.

    Invariant: a call is in `_calls` until it is answered, given up, or the stream has ended.
    """

    def __init__(self, gateway: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._gateway = gateway
        self._clock = clock
        there = read_address(gateway)
        self._near = there is not None and there.loopback and possible()
        self._again = clock.monotonic()
        self._task: asyncio.Task[None] | None = None
        self._stream: DialedStream | None = None
        self._last = 0
        self._calls: dict[int, asyncio.Future[pb.SubmitReply]] = {}

    @property
    def open(self) -> bool:
        return self._stream is not None

    def asks(self) -> bool:
        """Whether the next submission by gRPC is to ask for a name."""
        return self._near and self._task is None and self._clock.monotonic() >= self._again

    def told(self, name: str) -> None:
        """Connects to the name that the gateway answered with."""
        if self.asks() and name.startswith(NAMED):
            self._task = asyncio.create_task(self._run(name), name="client: direct submissions")

    def submit(self, request: pb.SubmitRequest, timeout: float) -> Coroutine[Any, Any, pb.SubmitReply]:
        """Makes one call over the stream, which is open now and may have ended when the call takes its first step.
        Raises the gateway's own error, or NotConnected; Unsent: the gateway cannot have heard it."""
        return self._submit(self._stream, request, timeout)

    async def _submit(self, stream: DialedStream | None, request: pb.SubmitRequest, timeout: float) -> pb.SubmitReply:
        if stream is None or stream is not self._stream:
            raise Unsent(str(self._away("its connection was closed")))
        self._last = number = self._last + 1
        future = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                try:
                    await stream.send(pb.NumberedSubmit(number=number, request=request))
                except StreamClosed:
                    raise self._away("its connection was closed") from None
                reply: pb.SubmitReply = await future
                return reply
        except TimeoutError:
            raise self._away("no answer in time") from None
        finally:
            del self._calls[number]
            if future.done() and not future.cancelled():
                future.exception()  # heard of, also where the write told it first

    async def close(self) -> None:
        """Ends the stream and the calls that wait on it. Harmless when closed."""
        task, self._task = self._task, None
        if task is not None:
            await cancel(task)

    async def _run(self, name: str) -> None:
        stream = dial_streams(name).open(SUBMISSIONS)
        try:
            await stream.send(pb.NumberedSubmit())
            if await stream.receive() is None:
                return
            self._stream = stream  # it is a gateway that answers
            while (answer := await stream.receive()) is not None:
                self._answered(answer)
        except StreamClosed:
            pass
        finally:
            self._stream, self._task = None, None
            self._again = self._clock.monotonic() + PAUSE
            stream.cancel()
            for future in self._calls.values():
                if not future.done():
                    future.set_exception(self._away("its connection was closed"))

    def _answered(self, answer: pb.NumberedAnswer) -> None:
        future = self._calls.get(answer.number)
        if future is None or future.done():  # given up
            return
        if answer.HasField("reply"):
            future.set_result(answer.reply)
            return
        refusal = answer.refusal
        error = error_named(refusal.error, refusal.message, refusal.retry_after, refusal.of_tenant)
        future.set_exception(error or TailraceError(f"{self._gateway}: {refusal.message}"))

    def _away(self, why: str) -> NotConnected:
        return NotConnected(f"{self._gateway} does not answer ({why}); is it running?")
