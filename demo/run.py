"""The demo's run: lists the files, starts the platform, kills a worker half-way, watches, and judges."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live

from ..assembly.platform import Platform
from ..bench.process import descendants
from ..model.errors import InvalidRequest, TailraceError, Unavailable
from ..runtime.machine import usual_executors
from ..wire.gateway import GatewayClient
from ..wire.scheduler import SchedulerClient
from .catalogue import Catalogue, Misbehaviour
from .functions import CATALOGUE_VARIABLE, JOURNAL_VARIABLE
from .journal import KILLED, WORKER, DemoFollower, DemoJournal, DemoVerdict, Judge
from .listing import EXCLUDED, link, python_files, spread, standard_library, write_broken
from .view import WIDTH, Picture, draw, line

FUNCTIONS = "tailrace.demo.functions"
#: Leases follow the heartbeat: with one second, a killed worker's items run again after about four.
HEARTBEAT = 1.0
#: Seconds between two looks at the journal and the parts; between two lines where there is no terminal.
LOOK = 0.25
LINE = 2.0
#: Seconds after which a run that is not done counts as broken, and tells what is missing.
LIMIT = 180.0
#: The answers 429: they begin when this share of the files was posted, and last for as many posts as this share of the
#: files.
THROTTLE_AT = 0.2
THROTTLED_SHARE = 0.02
#: Characters of the platform's log that are shown when it does not start.
LOG_SHOWN = 4000
#: Fewest files with which everything can be seen.
FEWEST = 20


@dataclass(slots=True)
class Result:
    """The result of a demo: the verdict, and the time that it took."""

    verdict: DemoVerdict
    seconds: float
    folder: Path
    dead: list[tuple[str, str]] = field(default_factory=list)
    symbols: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The fields that `--json` prints."""
        verdict = self.verdict
        return {
            "listed": verdict.listed,
            "indexed": verdict.indexed,
            "summarised": verdict.summarised,
            "retried": verdict.retried,
            "throttled": verdict.throttled,
            "dead_lettered": verdict.dead_lettered,
            "lost": len(verdict.lost),
            "overlaps": len(verdict.overlaps),
            "repeated": verdict.repeated,
            "killed_workers": verdict.killed_workers,
            "fences_fell": len(verdict.fences),
            "symbols": self.symbols,
            "seconds": round(self.seconds, 2),
            "items_per_s": round((verdict.ended + verdict.summarised) / max(self.seconds, 1e-9), 1),
            "data": str(self.folder / "data"),
            "problems": [*verdict.lost[:10], *verdict.overlaps[:10], *verdict.strange[:10]],
        }


def run_demo(data: Path | None, files: int | None, as_json: bool) -> int:
    """Runs the demo; returns 0 when nothing was lost and nothing ran twice at once, else 1.

    data   a folder for this run's data, made if need be (each run gets its own inside); None: a temporary one
    files  number of files of the standard library; None: all of them
    """
    if files is not None and files < FEWEST:
        raise InvalidRequest(f"--files {files}: expected {FEWEST} or more, so that there is something to see")
    folder = _own_folder(data)
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    log = folder / "platform.log"
    try:
        with _errors_to(log):
            result = asyncio.run(_Conductor(folder, files, console, quiet=as_json).run())
    except TailraceError:
        sys.stderr.write(log.read_text(errors="replace")[-LOG_SHOWN:])
        raise
    except KeyboardInterrupt:
        console.print(f"stopped; the data of this run is in {folder}")
        return 130
    if as_json:
        sys.stdout.write(json.dumps(result.as_dict(), indent=2) + "\n")
    else:
        _summary(result, console)
    return 0 if result.verdict.clean else 1


def _own_folder(data: Path | None) -> Path:
    if data is None:
        return Path(tempfile.mkdtemp(prefix="tailrace-demo-"))
    try:
        number = 1
        while (data / f"run-{number}").exists():
            number += 1
        folder = data / f"run-{number}"
        folder.mkdir(parents=True)
    except OSError as error:
        raise InvalidRequest(f"--data {data}: cannot be used as a folder: {error.strerror or error}") from None
    return folder.resolve()


class _Conductor:
    """One run of the demo, from the listing to the verdict."""

    def __init__(self, folder: Path, files: int | None, console: Console, *, quiet: bool) -> None:
        self._folder = folder
        self._console = console
        self._quiet = quiet
        self._live = not quiet and console.is_terminal
        root = standard_library()
        if files is not None:
            root = link(root, spread(python_files(root), files), folder / "stdlib")
        broken = write_broken(folder / "broken")
        self._listing = [str(root / name) for name in python_files(root)] + [str(path) for path in broken]
        self._tailers = [self._tailer("stdlib", root), self._tailer("broken", folder / "broken")]
        self._journal = folder / "journal"
        self._judge = Judge(self._listing)
        self._events: list[str] = []
        self._began = self._ready = time.monotonic()
        self._told = 0.0

    def _tailer(self, name: str, root: Path) -> Path:
        """Writes a tailer's file, as a user would."""
        source = {
            "kind": "directory",
            "path": str(root),
            "include": ["*.py"],
            "exclude": [pattern for each in EXCLUDED for pattern in (f"{each}/*", f"*/{each}/*")],
            "poll": "1m",
            "follow_links": True,  # a shorter run has links to the files
        }
        path = self._folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"name": name, "source": source, "function": "index"}, sort_keys=False))
        return path

    def _misbehaviour(self) -> Misbehaviour:
        begin = int(len(self._listing) * THROTTLE_AT)
        return Misbehaviour(
            throttle_from=begin, throttle_until=begin + max(3, int(len(self._listing) * THROTTLED_SHARE))
        )

    async def run(self) -> Result:
        catalogue = Catalogue(self._misbehaviour())
        await catalogue.start()
        gateway = _free_address()
        platform = Platform(
            self._folder / "data",
            [FUNCTIONS],
            tailers=self._tailers,
            heartbeat=HEARTBEAT,
            environment={
                "TAILRACE_GATEWAY": gateway,
                CATALOGUE_VARIABLE: catalogue.url.removeprefix("http://"),
                JOURNAL_VARIABLE: str(self._journal),
            },
            ports={"gateway": gateway},
            # Our own functions do not leak; one process more than processors uses the time in which others ask.
            worker={"max_runs": 10_000, "isolated": usual_executors() + 1},
            on_event=self._platform_event,
        )
        self._say(f"cataloguing the {len(self._listing)} Python files of {standard_library()}, two broken ones added")
        try:
            await platform.start()
            self._ready = time.monotonic()
            return await self._watched(platform, catalogue)
        finally:
            await platform.stop()
            await catalogue.stop()

    async def _watched(self, platform: Platform, catalogue: Catalogue) -> Result:
        scheduler = SchedulerClient(platform.scheduler_address)
        try:
            async with GatewayClient(platform.gateway_address) as gateway:
                with (
                    Live(console=self._console, auto_refresh=False, transient=False)
                    if self._live
                    else _Nothing() as live
                ):
                    seconds = await self._watch(platform, gateway, scheduler, live)
                letters, _ = await gateway.dead_letters(limit=100)
                dead = [
                    (Path(json.loads((await gateway.dead_letter(each.id)).payload)["path"]).name, each.reason)
                    for each in letters
                ]
        finally:
            await scheduler.close()
        return Result(self._judge.verdict(), seconds, self._folder, dead, catalogue.symbols)

    async def _watch(self, platform: Platform, gateway: GatewayClient, scheduler: SchedulerClient, live: Any) -> float:
        """Shows the progress until every file and every follow-up has an end, or LIMIT is over; returns the seconds
        that it took."""
        follower, killed = DemoFollower(self._journal), False
        while True:
            self._judge.take(follower.more())
            picture = await self._picture(gateway, scheduler)
            if live is not None:
                live.update(draw(picture), refresh=True)
            elif not self._quiet and picture.seconds - self._told >= LINE:
                self._told = picture.seconds
                self._console.print(line(picture))
            if not killed and picture.verdict.ended * 2 >= picture.verdict.listed:
                killed = True
                await self._kill(platform)
            if killed and self._judge.missing() == 0 and picture.verdict.ended == picture.verdict.listed:
                return time.monotonic() - self._ready
            if picture.seconds > LIMIT:
                self._say(f"not done after {LIMIT:g} s: {self._judge.missing()} files or follow-ups have no end")
                return picture.seconds
            await asyncio.sleep(LOOK)

    async def _picture(self, gateway: GatewayClient, scheduler: SchedulerClient) -> Picture:
        picture = Picture(time.monotonic() - self._began, self._judge.verdict(), events=self._events)
        with contextlib.suppress(Unavailable):  # a part that is away for a moment is shown empty
            picture.overview, picture.scheduler = await gateway.overview(), await scheduler.inspect()
        return picture

    async def _kill(self, platform: Platform) -> None:
        """Sends SIGKILL to a worker and all its executors, as when its machine dies."""
        for supervisor in platform.worker_pids():
            everyone = descendants(supervisor)
            for pid in everyone:
                _kill(pid)
            journal = DemoJournal(self._journal)
            await _gone(everyone)
            for pid in everyone:
                journal.write(KILLED, "-", WORKER if pid == supervisor else "executor", 0, 0, "-", pid)
            self._say(
                f"half-way: SIGKILL to the worker and its {len(everyone) - 1} processes; their items run again when "
                f"their leases end, in about {4 * HEARTBEAT:g} s"
            )

    def _platform_event(self, part: str, event: str, detail: str) -> None:
        self._say(f"{part} {event} ({detail})")

    def _say(self, text: str) -> None:
        self._events.append(f"{time.monotonic() - self._began:4.1f} s  {text}")
        if not self._quiet and not self._live:
            self._console.print(text)


def _summary(result: Result, console: Console) -> None:
    verdict, facts = result.verdict, result.as_dict()
    console.print()
    console.print(f"Catalogued {result.symbols} symbols of {verdict.indexed} files in {result.seconds:.1f} s.")
    console.print(
        f"  {verdict.summarised} follow-ups ran at a lower priority; {facts['items_per_s']:g} items a second in all"
    )
    console.print(f"  {verdict.retried} runs failed for a moment (503) and came back from a delay stream")
    console.print(f"  {verdict.throttled} runs were asked to wait (429) and spent no attempt")
    console.print(f"  {verdict.killed_workers} worker was killed half-way; every item that it held ran again")
    console.print(f"  {verdict.dead_lettered} files do not parse and are dead letters:")
    for name, reason in result.dead[:5]:
        console.print(f"    {name}: {reason}"[:WIDTH], markup=False)
    console.print(f"Judged by the functions' own journal: {len(verdict.lost)} lost, {len(verdict.overlaps)} overlaps.")
    for problem in facts["problems"]:
        console.print(f"  {problem}", markup=False)
    console.print()
    console.print("Try next:")
    console.print(f"  tailrace up --data {result.folder / 'data'}   then, beside it, tailrace dead list", markup=False)
    console.print("  tailrace bench --scenario stream")


@contextlib.contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Sends the logs of the platform's processes to a file meanwhile, since they would tear the live view apart."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class _Nothing:
    """Stands in for the live view where there is no terminal."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


async def _gone(pids: list[int]) -> None:
    """Returns when none of these processes runs any more."""
    while any(map(_alive, pids)):  # noqa: ASYNC110 - they are not our children: nobody tells us
        await asyncio.sleep(0.005)


def _alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


__all__ = ["Result", "run_demo"]
