"""Every snippet of README, docs and examples is true: files load, Python runs, commands answer what the page says.

In a ```console block a line that begins with `$ ` is a command, the lines below it are its output, in which `…` stands
for anything and spaces count as one. `make …` must name a target; parts that run until a signal are only parsed, since
the test runs the platform itself, on free ports that the commands find in the environment.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
from scenes import commands

import tailrace
from tailrace import cli
from tailrace.assembly.files import MODELS
from tailrace.assembly.platform import Platform
from tailrace.foundation.config import loads
from tailrace.tailers.config import TailerConfig

ROOT = Path(tailrace.__file__).parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages whose files make up the platform that the commands talk to.
LIVE = (
    "README.md",
    "start.md",
    "transactional-enqueue.md",
    "from-celery.md",
    "from-dramatiq-rq.md",
    "from-procrastinate.md",
    "jobs.md",
)
#: Commands that run until a signal, or for half a minute or more.
LASTING = (
    *("up", "scheduler", "worker", "delay", "gateway", "tailer run", "store serve", "demo", "bench"),
    "simulate --bugs",
)
#: Options whose value is a file or folder.
NAMING = ("--functions", "--config")
EXAMPLES = ROOT / "examples"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """The file that a snippet's first line names; empty: none."""
        match = re.match(r"# (?:file: )?([\w./-]+\.(?:py|yaml))\n", self.text)
        return match[1] if match else ""


def blocks(language: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match[1] == language:
                found.append(Block(page, text.count("\n", 0, match.start()) + 1, language, match[2]))
    return found


def steps(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that are shown below it."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        else:
            assert command, f"{block.where}: output before the first command"
            shown.append(line)
    if command:
        yield command, shown


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.where)
def test_every_yaml_file_loads(block: Block) -> None:
    assert block.file, f"{block.where}: its first line must name the file"
    name = Path(block.file).name
    model = TailerConfig if "tailers/" in block.file else MODELS[name]
    loads(block.text, block.where, model, environment={})


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_file_loads(path: Path) -> None:
    loads(path.read_text(), path.name, TailerConfig, environment={})


def test_every_make_target_and_lasting_command_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in blocks("console"):
        for command, _ in steps(block):
            words = shlex.split(command)
            if words[0] == "make":
                assert words[1] in targets, f"{block.where}: make has no target {words[1]!r}"
            elif lasting(command):
                parse(words[1:])


def lasting(command: str) -> bool:
    words = shlex.split(command)
    rest = " ".join(words[1:])
    return Path(words[0]).name == "tailrace" and any(rest == each or rest.startswith(f"{each} ") for each in LASTING)


def parse(words: list[str]) -> None:
    """Reads a command line as `tailrace` would, without running it."""
    command = typer.main.get_command(cli.app)
    context = command.make_context("tailrace", [], resilient_parsing=True)
    while hasattr(command, "get_command"):
        command = command.get_command(context, words[0])
        assert command is not None, f"tailrace has no command {words[0]!r}"
        words = words[1:]
    command.make_context("tailrace", list(words), parent=context)


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: no {target}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name in LIVE], ids=lambda page: page.name)
def test_what_up_is_given_is_there_by_then(page: Path) -> None:
    """A reader who follows a page from an empty folder has each file and each folder before `up` or `reload` reads
    it."""
    there, read, unread = set[str](), set[str](), ""
    shown = [block for language in ("python", "yaml", "console") for block in blocks(language) if block.page == page]
    started = False
    for block in sorted(shown, key=lambda each: each.line):
        if block.file:
            there |= {block.file, *map(str, Path(block.file).parents)}
            read |= set(re.findall(r"kind: directory, path: ([\w./-]+)", block.text))
            unread = block.file if started and "tailers/" in block.file else unread
        for command, _ in steps(block) if block.language == "console" else ():
            words = shlex.split(command)
            if words[0] == "mkdir":
                there |= {str(each) for word in words[1:] for each in (Path(word), *Path(word).parents)}
            if Path(words[0]).name == "tailrace" and words[1:2] in (["up"], ["reload"]):
                named = {value for option, value in itertools.pairwise(words) if option in NAMING}
                missing = (named | read) - there
                assert not missing, f"{block.where}: `{command}` comes before {', '.join(sorted(missing))}"
                started, unread = True, ""
    assert not unread, f"{page.name}: {unread} is shown after `up`, and no `tailrace reload` reads it"


def lay_out(folder: Path) -> tuple[list[str], Path]:
    """Writes the files that the pages show. Returns the functions' files and the configuration folder."""
    functions = [str(EXAMPLES / "send_email.py")]
    for block in blocks("python"):
        if block.file:
            path = folder / block.file
            assert not path.exists(), f"{block.where}: another page shows a {block.file} already"
            path.write_text(block.text)
            if block.page.name in LIVE:
                functions.append(str(path))
    for block in blocks("yaml"):
        if block.page.name in LIVE:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)
    for name in ("inbox", "invoices"):
        (folder / name).mkdir()
    return functions, folder / "my"


@pytest.mark.timeout(240)
async def test_commands_and_python_do_what_the_pages_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions, configs = lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for name, value in commands.on_path(tmp_path / "bin").items():
        monkeypatch.setenv(name, value)
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    platform = Platform(tmp_path / ".tailrace", functions, configs, heartbeat=1.0, worker={"executors": 1})
    await platform.start()
    try:
        monkeypatch.setenv("TAILRACE_GATEWAY", platform.gateway_address)
        monkeypatch.setenv("TAILRACE_SCHEDULER", platform.scheduler_address)
        monkeypatch.setenv("TAILRACE_STORE", platform.store_address)
        for page in PAGES:
            for block in blocks("console"):
                if block.page == page:
                    await follow(block)
            await run_python(page)
        code, output = await ask(sys.executable, "-W", "error", str(EXAMPLES / "send_email.py"))
        assert code == 0, output
        assert "sent to ann@example.org at attempt 1" in output
        assert "sent to later@example.org at attempt 2" in output
        assert "'nobody' is not an address" in output
    finally:
        await platform.drain(5)
        await platform.stop()


async def follow(block: Block) -> None:
    """Runs a block's commands in one shell and compares what they say."""
    mark = "=== tailrace docs ==="
    plan = [step for step in steps(block) if not step[0].startswith("make ") and not lasting(step[0])]
    if not plan:
        return
    script = "set -e\n" + "".join(f"{command}\necho '{mark}'\n" for command, _ in plan)
    code, output = await ask("bash", "-c", script)
    said = output.split(f"{mark}\n")
    done = len(said) - 1
    assert code == 0, f"{block.where}: `{plan[done][0]}` ended with {code}:\n{said[-1]}"
    for (command, shown), text in zip(plan, said, strict=False):
        if shown:
            pattern = "".join(_pattern(line) for line in shown)
            plain = "".join(f"{' '.join(line.split())}\n" for line in text.splitlines())
            assert re.fullmatch(pattern, plain, re.DOTALL), f"{block.where}: `{command}` says\n{text}\nnot\n{shown}"


def _pattern(line: str) -> str:
    words = " ".join(line.split())
    if words == "…":
        return "(?:.*\n)?"  # any lines
    return re.escape(words).replace("…", "[^\n]*") + "\n"


async def run_python(page: Path) -> None:
    """Runs a page's Python as one program, in its order."""
    parts = [block.text for block in blocks("python") if block.page == page and not block.file]
    if parts:
        code, output = await ask(sys.executable, "-W", "error", "-c", "\n\n".join(parts))
        assert code == 0, f"{page.relative_to(ROOT)}:\n{output}"


async def ask(*command: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 60)
    except TimeoutError:
        process.kill()
        raise AssertionError(f"{command[-1]} takes longer than a minute") from None
    return process.returncode or 0, output.decode()
