"""PostgreSQL for tests: a server that the tests of one process share, and servers of a test's own, which may be killed
and started again with their data."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from servers import none_to_be_had
from servers.packages import install, searched
from servers.program import Program
from tailrace.bench.docker import docker_answers
from tailrace.bench.process import free_ports
from tailrace.stores.postgres.migrations.migrate import bring_up
from tailrace.stores.postgres.server import PostgresOptions

ADDRESS = "TAILRACE_TEST_POSTGRES"
HOW = f"install postgresql, or set {ADDRESS}=postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
IMAGE = "postgres:15"
USER, PASSWORD = "tailrace", "not a secret"
#: Where Debian keeps the server's programs: not on the path.
PROGRAMS = "/usr/lib/postgresql/*/bin"
#: Nothing that the shared server answers survives a power cut. Where that is the subject a test has a server of its own
#: (`own_postgres`), which syncs like any other, or whose settings say that it does not.
FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=60")


class LocalPostgres:
    """PostgreSQL started here, with a database and its owner. `settings` are lines of its configuration; the data is
    kept from one start to the next."""

    def __init__(self, programs: Path, *settings: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tailrace-postgres-"))
        self._user = _ordinary_user()
        (self.port,) = free_ports(1)
        data = self._folder / "data"
        password = self._folder / "password"
        password.write_text(PASSWORD)
        for path in (self._folder, password):
            if self._user is not None:
                shutil.chown(path, self._user)
        initdb = [programs / "initdb", "--pgdata", data, "--username", USER, "--pwfile", password, "--no-sync"]
        done = subprocess.run(
            [*map(str, initdb), "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"],
            user=self._user,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with (data / "postgresql.conf").open("a") as config:
            place = (f"port={self.port}", "listen_addresses='127.0.0.1'", "unix_socket_directories=''")
            lines = (*place, "dynamic_shared_memory_type=mmap", *settings)  # else it outlives a killed server
            config.write("\n".join(lines) + "\n")
        self.data = data
        self.address = f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/postgres"
        self.program = Program(
            [str(programs / "postgres"), "-D", str(data)], self._answers, self._folder / "log", user=self._user
        )
        self.program.start()

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.address, connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Runs one statement, as the database's owner."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        """Ends the server and removes its data."""
        self.program.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def _ordinary_user() -> str | None:
    """The user that runs the server, since PostgreSQL does not run as root; None: this one."""
    if os.geteuid() != 0:
        return None
    return next(user for user in ("postgres", "nobody") if any(each.pw_name == user for each in pwd.getpwall()))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a real PostgreSQL that the tests of this process share: each test keeps to a schema of its own
    (`postgres_schema`)."""
    if address := os.environ.get(ADDRESS):
        print(f"\nPostgreSQL: {address.rpartition('@')[2]}, from {ADDRESS}")
        yield address
    elif docker_answers():
        from testcontainers.postgres import PostgresContainer

        with PostgresContainer(IMAGE, driver=None) as container:
            print(f"\nPostgreSQL: a container of {IMAGE}")
            yield container.get_connection_url()
    else:
        server = _started(*FAST)
        print(f"\nPostgreSQL: 127.0.0.1:{server.port}, a server of our own")
        yield server.address
        server.stop()


@pytest.fixture
def postgres_schema(postgres_server: str) -> Iterator[str]:
    """The name of a schema for one test, dropped after it."""
    name = f"t_{uuid.uuid4().hex}"
    yield name
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


class MadeSchemas:
    """Databases of a server whose schema `NAME` is made already: each is a copy of one that took all steps, which is a
    seventh of the work of taking them."""

    NAME = "made"

    def __init__(self, server: str) -> None:
        self._server = server
        self._template = f"t_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {self._template}")
        asyncio.run(bring_up(PostgresOptions(url=self._url(self._template), schema=self.NAME), plan=False))

    def new(self) -> str:
        """Makes a database. Returns its URL; the caller drops it."""
        name = f"t_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {self._template} STRATEGY file_copy")
        return self._url(name)

    def drop(self, url: str) -> None:
        self._execute(f"DROP DATABASE {psycopg.conninfo.conninfo_to_dict(url)['dbname']} WITH (FORCE)")

    def close(self) -> None:
        self.drop(self._url(self._template))

    def _url(self, database: str) -> str:
        return urlsplit(self._server)._replace(path=f"/{database}").geturl()

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(statement.encode())


@pytest.fixture(scope="session")
def made_schemas(postgres_server: str) -> Iterator[MadeSchemas]:
    """Schemas on the server that the tests of this process share."""
    made = MadeSchemas(postgres_server)
    yield made
    made.close()


@pytest.fixture
def made_postgres(made_schemas: MadeSchemas) -> Iterator[str]:
    """The URL of a database of the test's own, which has the schema `MadeSchemas.NAME`."""
    url = made_schemas.new()
    yield url
    made_schemas.drop(url)


@pytest.fixture
def own_postgres() -> Iterator[Callable[..., LocalPostgres]]:
    """Starts servers for one test alone, with these lines of configuration: to be killed, filled and locked. Without
    any it is one as users have it: every answered write is on its disk."""
    servers: list[LocalPostgres] = []

    def start(*settings: str) -> LocalPostgres:
        servers.append(_started(*settings))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def postgres_pooler(postgres_server: str) -> Iterator[str]:
    """The URL of a pooler in front of the shared server, which gives every transaction one of two connections."""
    if why := install("pgbouncer", "pgbouncer", "/usr/sbin"):
        none_to_be_had("a pooler in front of PostgreSQL", f"{why}: install pgbouncer")
    program = shutil.which("pgbouncer", path=searched("/usr/sbin"))
    assert program is not None
    server = psycopg.conninfo.conninfo_to_dict(postgres_server)
    folder = Path(tempfile.mkdtemp(prefix="tailrace-pgbouncer-"))
    (port,) = free_ports(1)
    (folder / "users").write_text(f'"{server["user"]}" "{server["password"]}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{server['dbname']} = host={server['host']} port={server['port']}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\n"
        f"auth_file = {folder / 'users'}\npool_mode = transaction\ndefault_pool_size = 2\n"
    )
    user = _ordinary_user()
    for path in (folder, *folder.iterdir()):
        if user is not None:
            shutil.chown(path, user)
    url = psycopg.conninfo.make_conninfo(postgres_server, host="127.0.0.1", port=port)
    parts = psycopg.conninfo.conninfo_to_dict(url)

    def answers() -> bool:
        try:
            with psycopg.connect(url, connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    pooler = Program([program, str(folder / "pgbouncer.ini")], answers, folder / "log", user=user)
    pooler.start()
    password = quote(str(parts["password"]))
    yield f"postgresql://{parts['user']}:{password}@127.0.0.1:{port}/{parts['dbname']}"
    pooler.kill()
    shutil.rmtree(folder, ignore_errors=True)


def _started(*settings: str) -> LocalPostgres:
    if why := install("initdb", "postgresql", PROGRAMS):
        none_to_be_had("a real PostgreSQL", f"{why}: {HOW}")
    found = shutil.which("postgres", path=searched(PROGRAMS))
    assert found is not None
    return LocalPostgres(Path(found).parent, *settings)
