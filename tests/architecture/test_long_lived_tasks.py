"""Tasks that last as long as their part are its duties, so that none of them ends unheard."""

from __future__ import annotations

import ast
from pathlib import Path

import tailrace

ROOT = Path(tailrace.__file__).parent

#: Files that start tasks without `Duties.begin`, and why nothing of it ends unheard.
MAY = {
    "assembly/processes.py": "keeps a child process running, whatever fails",
    "assembly/reloading.py": "one reload, whose caller is told",
    "assembly/running.py": "waits for what it starts",
    "gateway/callbacks.py": "one request, whose item is sent again when its lease is over",
    "gateway/acts.py": "one write, whose caller waits unless it left",
    "gateway/spooling.py": "one write, whose callers are told",
    "foundation/duties.py": "is where it is done",
    "sdk/shared_calls.py": "one call, whose callers are told",
    "foundation/lifecycle.py": "keeps parts open, whatever fails",
    "foundation/together.py": "waits for what it starts",
    "wire/direct.py": "one connection, which ends with it",
    "wire/session.py": "one connection; the dialer makes another",
    "wire/stores.py": "one call, whose caller is told",
    "wire/submissions.py": "one connection, or one call, whose callers are told",
    "stores/hints.py": "hints may be missed; begun again at the next use",
    "stores/kafka/client_thread.py": "one write, whose callers are told; begun again with the next",
    "stores/log/kafka_watch.py": "begun again at the next wait",
    "stores/outbox/sqlite.py": "one call, whose caller is told",
    "stores/postgres/pool.py": "one connection, whose caller is told",
    "stores/queue/poller.py": "a count that is begun again with the next lease",
    "stores/queue/waiting.py": "one write, whose callers are told",
    "stores/redis/sentinel.py": "a watch that is begun again with the next dial",
    "stores/sqlite/file.py": "one read, whose caller is told",
    "tailers/pumps/": "parts of a pump: Tailer._run, a duty, begins another when one fails",
    "tailers/sources/directory.py": "a scan, and the next read raises what it ends with",
    "tailers/sources/due.py": "one wait, and the next read raises what it ends with",
    "tailers/sources/objects.py": "feeder and lister, and the next read raises what they end with",
    "tailers/sources/wait_or_closed.py": "one wait, whose caller is told",
    "tailers/tailer.py": "a drain, which is waited for",
    "runtime/pool.py": "one start of an executor, which is tried again",
}


def test_tasks_begin_as_duties() -> None:
    wrong = []
    rooms = [each.name for each in ROOT.iterdir() if (each / "__init__.py").is_file()]
    for folder in sorted({*rooms} - {"bench", "demo", "testing"}):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if any(name == place or (place.endswith("/") and name.startswith(place)) for place in MAY):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("create_task"):
                    wrong.append(
                        f"{name}:{node.lineno}: begin it with Duties.begin (foundation/duties.py): it is watched then"
                    )
    assert not wrong, "\n".join(wrong)


def test_every_file_that_may_start_tasks_does() -> None:
    for place in MAY:
        paths = (ROOT / place).rglob("*.py") if place.endswith("/") else [ROOT / place]
        assert any("create_task" in path.read_text() for path in paths), (
            f"{place} starts no tasks: take it off the list"
        )
