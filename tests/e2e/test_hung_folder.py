"""A node of which one tailer reads a folder whose file system hangs: others work, and it ends when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from scenes.hung_folder import hung


def test_a_node_works_and_ends_while_a_file_system_hangs(tmp_path: Path) -> None:
    # Given a node with a tailer of a folder that hangs, and one of a folder that does not
    config = tmp_path / "configs"
    (config / "tailers").mkdir(parents=True)
    for name in ("gateway", "scheduler", "delay", "stores"):
        (config / f"{name}.yaml").write_text("listen: 127.0.0.1:0\n")
    (tmp_path / "good").mkdir()
    (tmp_path / "good/file").write_text("x")
    for name in ("hung", "good"):
        source = f"{{kind: directory, path: {tmp_path / name}}}"
        (config / f"tailers/{name}.yaml").write_text(f"name: {name}\nsource: {source}\nfunction: see\n")
    (tmp_path / "tasks.py").write_text(
        "import pathlib\nimport tailrace\n\n@tailrace.function\n"
        "def see(path: str, name: str, size: int, modified: float) -> None:\n"
        f"    pathlib.Path({str(tmp_path / 'seen')!r}).write_text(path)\n"
    )
    command = [sys.executable, "-m", "tailrace.cli", "up", "--json", "--functions", "tasks.py", "--config", "configs"]
    with hung(tmp_path / "hung"):
        process = subprocess.Popen(
            [*command, "--data", "data"],
            cwd=tmp_path,
            env={**os.environ, "TAILRACE_LOG": "json"},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            events = (json.loads(line) for line in process.stderr)
            assert any(each.get("event") == "ready" and each.get("part") == "tailrace" for each in events)
            # When the other one has handed its file to a function
            while not (tmp_path / "seen").exists():
                assert process.poll() is None
                time.sleep(0.05)
            # Then the node ends when it is told to
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=60)
            assert process.returncode == 0, rest
        finally:
            process.kill()
            process.communicate()
