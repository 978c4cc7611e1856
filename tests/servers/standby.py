"""A PostgreSQL with a standby, both real: the standby is stopped and started again, the primary killed, the standby
promoted."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from servers.packages import searched
from servers.postgres import PASSWORD, PROGRAMS, USER, LocalPostgres
from servers.program import Program
from tailrace.bench.process import free_ports

#: The standby's name, as the primary knows it.
NAME = "second"


class WithStandby:
    """A primary and its standby, which is synchronous when `wait_for_it` says so."""

    def __init__(self, own_postgres: Callable[..., LocalPostgres]) -> None:
        found = shutil.which("postgres", path=searched(PROGRAMS))
        self.primary = primary = own_postgres("max_wal_senders=5", "wal_level=replica")
        assert found is not None
        programs = Path(found).resolve().parent
        self._folder = Path(tempfile.mkdtemp(prefix="tailrace-standby-"))
        self._data = self._folder / "data"
        user = self._user = primary.program._user
        if user is not None:
            shutil.chown(self._folder, user)
        (self.port,) = free_ports(1)
        copied = f"host=127.0.0.1 port={primary.port} user={USER} password='{PASSWORD}' application_name={NAME}"
        subprocess.run(
            [programs / "pg_basebackup", "-d", copied, "-D", self._data, "-R", "-X", "stream", "-c", "fast", "-N"],
            user=user,
            cwd=self._folder,
            check=True,
        )
        with (self._data / "postgresql.auto.conf").open("a") as config:
            config.write(f"\nport={self.port}\nsynchronous_standby_names=''\n")
        self._programs = programs
        self.address = primary.address.replace(str(primary.port), str(self.port))
        #: Both, of which the one that takes writes is used.
        password = PASSWORD.replace(" ", "%20")
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{self.port}"
        self.either = f"postgresql://{USER}:{password}@{hosts}/postgres?target_session_attrs=read-write"
        self.program = Program(
            [str(programs / "postgres"), "-D", str(self._data)], self._answers, self._folder / "log", user=user
        )
        self.program.start()

    def wait_for_it(self) -> None:
        """Has the primary confirm nothing that the standby does not have."""
        self.primary.run(f"ALTER SYSTEM SET synchronous_standby_names TO '{NAME}'")
        self.primary.run("SELECT pg_reload_conf()")
        told = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        while self.primary.run(told) != [(1,)]:
            pass

    def promote(self) -> None:
        """Makes the standby the primary."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)

    def stop(self) -> None:
        """Ends the standby and removes its data."""
        self.program.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.address, connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False


@pytest.fixture
def with_standby(own_postgres: Callable[..., LocalPostgres]) -> Iterator[WithStandby]:
    """A primary and its standby, for one test alone."""
    servers = WithStandby(own_postgres)
    yield servers
    servers.stop()
