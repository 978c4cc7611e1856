"""Neighbours on one machine, and their rights: the user that runs a platform has all without any set-up; another user
has none."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.foundation.run_dir import VARIABLE, RunDir
from tailrace.wire.scheduler import SchedulerSessions
from tailrace.wire.stream import StreamClosed
from tailrace.wire.v1 import scheduler_pb2 as pb

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user"),
    pytest.mark.asyncio(loop_scope="module"),
]

NOBODY = 65534
#: Becomes another user, once everything is loaded: an interpreter in somebody's home is not for others to read.
AS_NOBODY = f"""
import contextlib, encodings.idna, importlib, os, pkgutil, sys
import tailrace.cli
for part in ("gateway", "scheduler", "sdk", "wire", "foundation", "model"):
    folder = importlib.import_module("tailrace." + part)
    for each in pkgutil.walk_packages(folder.__path__, folder.__name__ + "."):
        with contextlib.suppress(ImportError):
            importlib.import_module(each.name)
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
"""
#: Runs lines of words as commands, one after the other, and says the exit status of each behind what it said.
COMMAND = (
    AS_NOBODY
    + """
lines = sys.argv[1:]
sys.argv[0] = "tailrace"
for line in lines:
    if not (pid := os.fork()):
        sys.argv[1:] = line.split()
        tailrace.cli.main()
        sys.exit(0)
    print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
)
#: A worker of one's own: says hello to a scheduler, and what it is answered.
THIEF = (
    AS_NOBODY
    + """
import asyncio
from tailrace.model.errors import InvalidRequest
from tailrace.model.function_spec import FunctionSpec
from tailrace.wire.convert import function_to_wire
from tailrace.wire.scheduler import SchedulerSessions
from tailrace.wire.stream import StreamClosed
from tailrace.wire.v1 import scheduler_pb2 as pb

async def attach(address):
    stream = SchedulerSessions(address).attach_worker()
    pool = pb.Pool(name="default", functions=["pay"], slots=100, limit=100)
    hello = pb.Hello(session="thief", name="thief", functions=[function_to_wire(FunctionSpec("pay"))], pools=[pool])
    try:
        await stream.send(pb.WorkerFrame(hello=hello))
        print("welcome", await stream.receive())
    except StreamClosed as closed:
        if not isinstance(closed.error, InvalidRequest):  # gRPC has its own word for a write to who has refused
            return await attach(address)
        print(closed)

for address in sys.argv[1:]:
    asyncio.run(attach(address))
"""
)
FUNCTIONS = """
import os
import tailrace

@tailrace.function()
def pay(amount: int) -> int:
    return os.getuid()

@tailrace.function()
def fail() -> None:
    raise tailrace.Fatal("as it does")
"""
REFUSED = "this platform is run by root, and the call did not show its secret"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(folder: Path) -> AsyncIterator[Platform]:
    (folder / "shop.py").write_text(FUNCTIONS)
    running = Platform(folder / "data", [str(folder / "shop.py")], heartbeat=0.5, worker={"executors": 1})
    await running.start()
    yield running
    await running.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


def environment(platform: Platform, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "XDG_RUNTIME_DIR")}
    where = {"TAILRACE_GATEWAY": platform.gateway_address, "TAILRACE_SCHEDULER": platform.scheduler_address}
    return {**kept, **where, "TAILRACE_LOG": "text", "TMPDIR": "/tmp", "HOME": "/tmp", **more}


async def ran(code: str, platform: Platform, *words: str, **more: str) -> tuple[int, str]:
    """Runs code with arguments. Returns its exit status and its output."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, *words],
        env=environment(platform, **more),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


async def test_another_user_is_refused_with_a_sentence(platform: Platform) -> None:
    lines = (
        "dead purge --all --yes",
        "gate pause pay --why because",
        "submit pay amount=1",
        "metrics",
        "inspect",
    )
    _, said = await ran(COMMAND, platform, *lines)
    assert said.count("status 2\n") == said.count(REFUSED) == len(lines), said


async def test_another_user_gets_no_work(platform: Platform) -> None:
    _, said = await ran(THIEF, platform, platform.scheduler_address, platform._attach_address)
    assert [line.startswith(REFUSED) for line in said.splitlines()] == [True, True], said


async def test_what_another_user_tried_changed_nothing_and_its_own_user_gets_in(platform: Platform) -> None:
    # Given a dead letter
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        with pytest.raises(tailrace.WorkloadFailed):
            await (await client.submit("fail")).result(timeout=30)
    # When another user purges all, then the letter is there for whoever runs the platform
    await ran(COMMAND, platform, "dead purge --all --yes")
    mine = "from tailrace.cli import main; main()"
    status, said = await ran(mine, platform, "dead", "list", "--json", **{VARIABLE: os.environ[VARIABLE]})
    assert status == 0 and len(json.loads(said)) == 1, said


async def test_what_the_platform_makes_is_its_users_alone(platform: Platform, folder: Path) -> None:
    run_dir = Path(os.environ[VARIABLE])
    made = [run_dir, run_dir / "card.json", *(folder / "data").rglob("*"), folder / "data"]
    assert len(made) > 5
    assert {path: oct(path.stat().st_mode) for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077} == {}


async def test_who_may_read_the_run_directory_gets_in(platform: Platform, tmp_path: Path) -> None:
    """A member of the group that access.yaml names may: tests/unit/foundation/test_run_dir.py has the modes."""
    shared = Path(f"/tmp/tailrace-shared-{os.getpid()}")
    shared.mkdir(mode=0o755, exist_ok=True)
    card = shared / "card.json"
    card.write_bytes((Path(os.environ[VARIABLE]) / "card.json").read_bytes())
    card.chmod(0o644)
    try:
        _, said = await ran(COMMAND, platform, "dead list", **{VARIABLE: str(shared)})
        assert said.endswith("status 0\n"), said
    finally:
        card.unlink()
        shared.rmdir()


#: A program that took the ports of a platform that is down: it says what it is called, and never answers.
SQUATTER = (
    "from concurrent.futures import ThreadPoolExecutor"
    + AS_NOBODY
    + """
import socket, grpc

class Heard(grpc.GenericRpcHandler):
    def service(self, call):
        print(call.method, flush=True)

server = grpc.server(ThreadPoolExecutor(1), handlers=[Heard()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
plain = socket.create_server(("127.0.0.1", 0))
print(port, plain.getsockname()[1], flush=True)
while True:
    print(plain.accept()[0].recv(1000), flush=True)
"""
)


async def test_a_port_that_another_user_took_is_not_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "run"))
    for card in (False, True):
        if card:
            RunDir(tmp_path / "run").open()
        # Given a neighbour where a gateway and a scheduler were
        neighbour = await asyncio.create_subprocess_exec(sys.executable, "-c", SQUATTER, stdout=asyncio.subprocess.PIPE)
        assert neighbour.stdout is not None
        try:
            port, plain = (await neighbour.stdout.readline()).split()
            # When the user's programs, workers and tailers call there
            for address in (f"127.0.0.1:{int(port)}", f"direct:127.0.0.1:{int(plain)}"):
                sessions = SchedulerSessions(address)
                with pytest.raises(StreamClosed, match=r"another user of this machine \(nobody\) listens"):
                    await sessions.attach_worker().send(pb.WorkerFrame(hello=pb.Hello(session="s", name="w")))
                await sessions.close()
            async with tailrace.AsyncClient(f"127.0.0.1:{int(port)}", timeout=1.0) as several:
                with pytest.raises(tailrace.Unavailable, match="another user of this machine"):
                    await several.submit("pay", amount=1)
            client = tailrace.Client(f"127.0.0.1:{int(port)}", timeout=1.0)
            with pytest.raises(tailrace.Unavailable, match="another user of this machine"):
                await asyncio.to_thread(client.submit, "pay", amount=1)
            client.close()
        finally:
            neighbour.kill()
            await neighbour.wait()
        # Then it heard nothing
        assert [line for line in (await neighbour.stdout.read()).splitlines() if line != b"b''"] == []


async def test_a_neighbour_at_another_address_of_the_port_keeps_nobody_out(platform: Platform) -> None:
    # Given a neighbour who listens beside the gateway, where nobody calls
    port = platform.gateway_address.rpartition(":")[2]
    beside = (
        AS_NOBODY + f"import socket; made = socket.create_server(('127.0.0.2', {port})); print(1, flush=True); input()"
    )
    neighbour = await asyncio.create_subprocess_exec(
        sys.executable, "-c", beside, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert neighbour.stdout is not None and await neighbour.stdout.readline()
    try:
        # Then the platform's own user is let in, by a program that was not connected before
        client = tailrace.Client(platform.gateway_address)
        assert await asyncio.to_thread(client.submit, "pay", amount=1)
        client.close()
    finally:
        neighbour.kill()
        await neighbour.wait()
