"""A PostgreSQL for the scenarios: a server that TAILRACE_BENCH_POSTGRES names, else one on loopback for one run."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..model.errors import ConfigError
from .server_node import ServerNode, running

VARIABLE = "TAILRACE_BENCH_POSTGRES"
#: The folders in which Debian keeps the server's programs: not on the path.
PROGRAMS = "/usr/lib/postgresql/*/bin"
USER = "tailrace"
#: Settings beside the defaults, which are durable: memory for a working set of a few hundred MB.
SETTINGS = ("shared_buffers=512MB", "max_wal_size=4GB", "unix_socket_directories=''", "listen_addresses='127.0.0.1'")


class PostgresNode(ServerNode):
    """A cluster of its own in `folder`, made with it. Raises ConfigError where PostgreSQL is not installed."""

    name = "postgres"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        places = [os.environ.get("PATH", os.defpath), *sorted(glob.glob(PROGRAMS), reverse=True)]  # noqa: PTH207
        initdb, postgres = (shutil.which(program, path=os.pathsep.join(places)) for program in ("initdb", "postgres"))
        if initdb is None or postgres is None:
            raise ConfigError(
                "PostgreSQL is not installed: install the package postgresql, or name a server in "
                f"{VARIABLE} (postgresql://USER:PASSWORD@HOST:PORT/DATABASE)"
            )
        self._program, self._password = postgres, secrets.token_hex(16)
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        (folder / "password").write_text(self._password)
        self.user = _ordinary_user(folder)
        made = subprocess.run(
            [
                *(initdb, "--pgdata", str(self.data), "--username", USER, "--pwfile", str(folder / "password")),
                *("--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"),
            ],
            user=self.user,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise ConfigError(f"initdb failed: {made.stderr.strip()[-500:]}")
        with (self.data / "postgresql.conf").open("a") as config:
            config.write("\n".join((f"port={self.port}", *SETTINGS)) + "\n")

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{self._password}@{self.address}/postgres"

    def command(self) -> Sequence[str]:
        return (self._program, "-D", str(self.data))


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """The URL of a server; one of our own has its data in `folder`. Raises ConfigError where there is none."""
    if address := os.environ.get(VARIABLE, ""):
        yield address
        return
    with running(PostgresNode, folder) as node:
        yield node.url


def _ordinary_user(folder: Path) -> str | None:
    """The user that PostgreSQL runs as, since it does not run as root; None: ours. The run's folder is made to let it
    pass. Raises ConfigError where a folder above that does not: it is not ours."""
    if os.geteuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    user = next(user for user in ("postgres", "nobody") if user in known)
    for path in (folder, folder / "password"):
        shutil.chown(path, user)
    folder.parent.chmod(folder.parent.stat().st_mode | 0o011)
    for above in folder.resolve().parent.parents:
        if not above.stat().st_mode & 0o001:
            raise ConfigError(
                f"PostgreSQL does not run as root, and the user it runs as here, {user}, may not pass {above}: "
                f"chmod o+x {above}, or give another folder with --data"
            )
    return user
