"""A PostgreSQL for the scenarios: the one that TAILRACE_BENCH_POSTGRES names, else a server on loopback for one run."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from ..sdk.model.errors import ConfigError

VARIABLE = "TAILRACE_BENCH_POSTGRES"
#: Where Debian keeps the server's programs: not on the path.
PROGRAMS = "/usr/lib/postgresql/*/bin"
USER = "tailrace"
#: As it comes, durable; but with memory for a working set of a few hundred MB.
SETTINGS = ("shared_buffers=512MB", "max_wal_size=4GB", "unix_socket_directories=''", "listen_addresses='127.0.0.1'")
START_WITHIN = 20.0


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """The URL of a server; one of our own has its data in `folder`. Raises ConfigError where there is none."""
    if address := os.environ.get(VARIABLE, ""):
        yield address
        return
    folders = os.pathsep.join([os.environ.get("PATH", os.defpath), *sorted(glob.glob(PROGRAMS), reverse=True)])  # noqa: PTH207
    initdb, postgres = (shutil.which(program, path=folders) for program in ("initdb", "postgres"))
    if initdb is None or postgres is None:
        raise ConfigError(
            "PostgreSQL is not installed: install the package postgresql, or name a server in "
            f"{VARIABLE} (postgresql://USER:PASSWORD@HOST:PORT/DATABASE)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    data, password = folder / "data", secrets.token_hex(16)
    (folder / "password").write_text(password)
    user = _ordinary_user(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [initdb, "--pgdata", str(data), "--username", USER, "--pwfile", str(folder / "password"), "--no-sync"]
    made = subprocess.run(
        [*command, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"],
        user=user,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise ConfigError(f"initdb failed: {made.stderr.strip()[-500:]}")
    with (data / "postgresql.conf").open("a") as config:
        config.write("\n".join((f"port={port}", *SETTINGS)) + "\n")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([postgres, "-D", str(data)], stdout=log, stderr=log, user=user, cwd=folder)
    try:
        until = time.monotonic() + START_WITHIN
        while "ready to accept connections" not in (folder / "log").read_text():
            if process.poll() is not None or time.monotonic() > until:
                raise ConfigError(f"postgres did not start: {(folder / 'log').read_text()[-500:]}")
            time.sleep(0.02)
        yield f"postgresql://{USER}:{password}@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait()


def _ordinary_user(folder: Path) -> str | None:
    """PostgreSQL does not run as root; the run's folder must let it pass."""
    if os.geteuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    user = next(user for user in ("postgres", "nobody") if user in known)
    for path in (folder, folder / "password"):
        shutil.chown(path, user)
    folder.parent.chmod(folder.parent.stat().st_mode | 0o011)
    return user
