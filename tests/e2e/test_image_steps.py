"""The steps of the Dockerfile, one by one, where no image can be built: the files that it lets in are installed by the
image's lock, and the platform runs from there as a user without rights, who may write to its data alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tailrace

ROOT = Path(tailrace.__file__).parent
NOBODY = 10_001


def done(*command: object, **options: object) -> str:
    words = [str(word) for word in command]
    found = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, **options)  # type: ignore[call-overload]
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
    return str(found.stdout)


def for_all(path: Path) -> bool:
    """Whether everybody gets to a folder: this Python may be in somebody's home."""
    return all(each.stat().st_mode & 0o001 for each in (path.resolve(), *path.resolve().parents))


@pytest.mark.long(minutes=0.7)
def test_the_images_steps_make_a_platform_that_nobody_in_particular_can_run(tmp_path: Path) -> None:
    # Given what the image is made of, and nothing else
    context = tmp_path / "src"
    context.mkdir()
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line.startswith("!"):
            source = ROOT / line[1:]
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, context / line[1:])  # type: ignore[operator]
    # When it is installed as the Dockerfile says
    home = tmp_path / "opt"
    done(sys.executable, "-m", "venv", home)
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done(*pip, "--require-hashes", "-r", context / "requirements-image.lock")
    done(*pip, "--no-deps", context)
    assert done(home / "bin" / "tailrace", "--version", cwd="/").startswith(f"tailrace {tailrace.__version__}")
    # Then it runs as nobody in particular, and writes to its data, its run directory and /tmp alone
    folders = {name: tmp_path / name for name in ("data", "run")}
    as_nobody: dict[str, object] = {"cwd": "/"}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
        if os.geteuid() == 0 and for_all(Path(sys.base_prefix)):
            os.chown(folder, NOBODY, NOBODY)
            as_nobody |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    for each in (tmp_path, *tmp_path.parents):
        if each.stat().st_uid == os.geteuid() and not each.stat().st_mode & 0o001:
            each.chmod(each.stat().st_mode | 0o011)
    tasks = tmp_path / "tasks.py"
    shutil.copy2(ROOT / "deploy" / "compose" / "tasks.py", tasks)
    settings = {
        "PATH": f"{home / 'bin'}:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TAILRACE_DATA": str(folders["data"]),
        "TAILRACE_RUN_DIR": str(folders["run"]),
    }
    command = [str(home / "bin" / "tailrace"), "up", str(tasks), "--json"]
    platform = subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, text=True, **as_nobody)  # type: ignore[call-overload]
    try:
        assert platform.stderr is not None
        next(line for line in platform.stderr if '"part": "tailrace"' in line and '"event": "ready"' in line)
        here: dict[str, object] = {"env": settings, **as_nobody}
        assert done(home / "bin" / "tailrace", "health", **here).count(": ready") == 2
        id = done(home / "bin" / "tailrace", "submit", "greet", "name=Ann", **here).strip()
        assert done(home / "bin" / "tailrace", "result", id, "--wait", "--timeout", "30s", **here) == '"Hello, Ann!"\n'
    finally:
        platform.send_signal(signal.SIGTERM)
        platform.communicate(timeout=60)
