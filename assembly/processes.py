"""Child processes of `tailrace up`: started with one JSON argument, ready when they say so, restarted when they die.

A child gets the read end of a *lifeline* pipe: when the parent dies, however, the pipe closes and the child drains. It
says that it is ready by one JSON line on another pipe, which names the address it listens on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from ..foundation.lifecycle import end_all
from ..model.backoff import REAP, STORE, Backoff
from ..model.errors import TailraceError, UserError
from .parts import PartSettings, WorkerSettings, to_data
from .running import GRACE

#: Seconds that a part which gave up its start gets to end.
ENDS_WITHIN = 2.0
#: Seconds that a part gets beyond its drain to stop the remaining runs, say so, and close in order.
MARGIN = 10.0
#: Seconds that a worker's guard gets to end processes that the worker leaves.
GUARD_TIMEOUT = 10.0
#: Seconds after which a part that ran so long starts its back-off afresh.
SETTLED = 30.0

_LOG = logging.getLogger("tailrace.parts")


class PartFailed(TailraceError):
    """A part did not start. `code` is its exit status; its own message is on its standard error. None: the system did
    not start it at all, for the reason `why`."""

    def __init__(self, name: str, code: int | None, why: str = "") -> None:
        did_not = f"did not start (exit status {code}); its own message is above"
        super().__init__(f"the {name} {f'could not be started: {why}' if why else did_not}")
        self.code = code
        self.why = f"it could not be started: {why}" if why else f"exit status {code}"


@dataclass(slots=True)
class Child:
    """One running child. `grace`: seconds that it was told its drain may take. Invariant: `lifeline` stays open for as
    long as the child is wanted."""

    name: str
    process: subprocess.Popen[bytes]
    lifeline: int
    grace: float = GRACE
    ready: dict[str, Any] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        """Process id of the part itself. The process that was started for a worker is its guard; the worker is the
        guard's child."""
        return int(self.ready.get("pid", self.process.pid))


async def spawn(
    settings: PartSettings,
    environment: Mapping[str, str] | None = None,
    stderr: IO[bytes] | None = None,
    within: Sequence[str] = (),
) -> Child:
    """Starts a part and waits until it is ready. Raises PartFailed when it ends first or says nothing in time, or
    cannot be started, and ConfigError when its file does not say how long it may take.

    `stderr`: where it logs to; None: where this process does. `within`: words before its command, which becomes it
    (`ip netns exec NAME`)."""
    name, limit = settings.name, settings.ready_within
    told = {"part": name, "grace": settings.drain_time, "settings": to_data(settings)}
    try:
        child, ready = _launched(name, told, within, stderr, {**os.environ, **(environment or {})})
    except OSError as error:  # no process, memory or descriptor left
        raise PartFailed(name, None, str(error)) from error
    try:
        line = await _read_line(ready, limit)
    except TimeoutError:
        await stop(child, 0)
        why = f"it was not ready within {limit:g} s; its own messages may say why"
        if isinstance(settings, WorkerSettings):
            why += "; if its modules take that long to load, raise load_limit in worker.yaml"
        raise PartFailed(name, None, why) from None
    except BaseException:  # the caller has given up: nobody would end the child
        await stop(child, 0)
        raise
    finally:
        os.close(ready)
    if not line:
        try:
            async with asyncio.timeout(ENDS_WITHIN):  # it is about to end: killed, it would have another status
                await _reaped(child)
        except TimeoutError:
            pass
        finally:
            await stop(child, 0)
        raise PartFailed(name, child.process.returncode)
    child.ready = json.loads(line)
    return child


def _launched(
    name: str, told: dict[str, Any], within: Sequence[str], stderr: IO[bytes] | None, environment: dict[str, str]
) -> tuple[Child, int]:
    """Starts the child. Returns it, and the pipe on which it says that it is ready. Raises OSError, with every pipe
    closed."""
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        lifeline_read, lifeline = os.pipe()
        theirs.callback(os.close, lifeline_read)
        ours.callback(os.close, lifeline)
        ready, ready_write = os.pipe()
        theirs.callback(os.close, ready_write)
        ours.callback(os.close, ready)
        text = json.dumps({**told, "lifeline": lifeline_read, "ready": ready_write})
        process = subprocess.Popen(
            [*within, sys.executable, "-P", "-m", "tailrace.assembly.child", text],
            pass_fds=(lifeline_read, ready_write),
            stdin=subprocess.DEVNULL,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
        ours.pop_all()
        return Child(name, process, lifeline, told["grace"]), ready


async def _read_line(descriptor: int, limit: float) -> bytes:
    """Reads the one line that a child writes when it is ready; empty when it ended. Raises TimeoutError after `limit`
    seconds."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, arrived.set)
    line = b""
    try:
        async with asyncio.timeout(limit):
            while not line.endswith(b"\n"):
                await arrived.wait()
                arrived.clear()
                part = os.read(descriptor, 65_536)
                if not part:
                    return b""
                line += part
    finally:
        loop.remove_reader(descriptor)
    return line


async def wait(child: Child) -> int:
    """Waits for the child's exit status."""
    return await asyncio.to_thread(child.process.wait)


async def stop(child: Child, grace: float, *, hurry: bool = False) -> int:
    """Asks the child to drain, or in a `hurry` to stop without that, and kills it after `grace` seconds. Returns its
    exit status."""
    if child.process.poll() is None and grace > 0:
        child.process.send_signal(signal.SIGTERM)
        if hurry:  # two of one kind may become one on their way
            child.process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(grace):
                await _reaped(child)
        except TimeoutError:
            pass
    if child.process.poll() is None:
        await _kill(child)
    if child.lifeline >= 0:
        os.close(child.lifeline)
        child.lifeline = -1
    return child.process.returncode


async def _kill(child: Child) -> None:
    """Ends the part. A guard then ends processes that the part leaves, and itself."""
    if child.pid != child.process.pid:
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            os.kill(child.pid, signal.SIGKILL)
            async with asyncio.timeout(GUARD_TIMEOUT):
                await _reaped(child)
                return
    child.process.kill()
    await _reaped(child)


async def _reaped(child: Child) -> None:
    """Waits for the end without a thread: a thread in `wait` could not be cancelled."""
    backoff = Backoff(*REAP)
    while child.process.poll() is None:
        pause = backoff.pause()
        await asyncio.sleep(pause)


class KeptProcess:
    """A part that is kept running: started again with back-off whenever it dies.

    `settings` is asked before every start, so that a part learns the addresses of the others as they are now.
    `on_ready` is called after each start, `on_death` after each end with the reason; their errors are only logged.
    """

    def __init__(
        self,
        name: str,
        settings: Callable[[], PartSettings],
        environment: Mapping[str, str] | None = None,
        *,
        on_ready: Callable[[Child], None] = lambda child: None,
        on_death: Callable[[str, str], None] = lambda name, why: None,
    ) -> None:
        self.name = name
        self.child: Child | None = None
        self._settings = settings
        self._environment = environment
        self._on_ready = on_ready
        self._on_death = on_death
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts it for the first time, and raises if that fails; later starts are tried again."""
        self.child = await spawn(self._settings(), self._environment)
        self._tell(self._on_ready, self.child)
        self._task = asyncio.create_task(self._keep(), name=f"keep-{self.name}")

    async def _keep(self) -> None:
        backoff = Backoff(*STORE)
        loop = asyncio.get_running_loop()
        while True:
            child = self.child
            if child is not None:
                started = loop.time()
                await _reaped(child)
                await stop(child, 0)
                self._tell(self._on_death, self.name, f"exit status {child.process.returncode}")
                if loop.time() - started > SETTLED:
                    backoff.reset()
                self.child = None
            await asyncio.sleep(backoff.pause())
            try:
                self.child = await spawn(self._settings(), self._environment)
            except PartFailed as failed:
                self._tell(self._on_death, self.name, failed.why)
            except UserError as error:  # its file is not as it should be any more
                self._tell(self._on_death, self.name, f"it could not be started: {error}")
            except Exception as error:
                _LOG.exception("starting the %s failed; trying again", self.name)
                self._tell(self._on_death, self.name, f"it could not be started: {error}")
            else:
                self._tell(self._on_ready, self.child)

    def _tell(self, whom: Callable[..., None], *what: object) -> None:
        """Calls a listener, whose failure keeps no part from its next start."""
        try:
            whom(*what)
        except Exception:
            _LOG.exception("an event of the %s could not be told", self.name)

    async def drain(self, timeout: float) -> None:
        """Ends the part gracefully: it gets its configured time, and a margin, but no more than `timeout` seconds."""
        await self._forget()
        if self.child is not None:
            await stop(self.child, min(timeout, self.child.grace + MARGIN))

    async def stop(self, within: float = 0.0) -> None:
        """Ends the part now, without a drain; in order where that takes no longer than `within` seconds."""
        await self._forget()
        if self.child is not None:
            await stop(self.child, within, hurry=True)
            self.child = None

    async def _forget(self) -> None:
        if self._task is not None:
            await end_all([self._task])
            self._task = None
