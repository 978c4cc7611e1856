"""S3 for tests: moto's server, in a process of its own, that speaks the real protocol over HTTP; and a way to make it
answer badly.

    python tests/servers/moto_s3.py PORT      a server in the foreground
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from obstore.store import S3Store

sys.path.insert(0, str(Path(__file__).parents[1]))
from tailrace.bench.process import free_ports

#: Seconds until it answers, on a busy machine.
START_WITHIN = 60.0
BUCKET = "bucket"


class Moto:
    """A server, empty. `endpoint` is its address."""

    def __init__(self) -> None:
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        self._address = ("127.0.0.1", port)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def wait(self) -> None:
        """Waits until the server answers."""
        deadline = time.monotonic() + START_WITHIN
        while time.monotonic() < deadline:
            try:
                self.ask("GET", "/moto-api/")
            except OSError:
                assert self._process.poll() is None, "moto's server ended"
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"moto's server did not answer within {START_WITHIN} s")

    def ask(self, method: str, path: str) -> int:
        """Makes one request. Returns its status."""
        connection = http.client.HTTPConnection(*self._address, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def reset(self) -> None:
        """Forgets everything, and has an empty bucket again."""
        assert self.ask("POST", "/moto-api/reset") == 200
        assert self.ask("PUT", f"/{BUCKET}") == 200

    def stop(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait(10)

    @property
    def keys(self) -> dict[str, Any]:
        """Keys of a tailer's file under `source`, but for the kind."""
        credentials = {"access_key_id": "test", "secret_access_key": "test-secret"}
        return {
            "url": f"s3://{BUCKET}/in",
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "credentials": credentials,
        }

    def client(self, prefix: str = "in") -> S3Store:
        """A client of our own, to put objects with."""
        return S3Store(
            BUCKET,
            prefix=prefix,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id="test",
            secret_access_key="test-secret",
            client_options={"allow_http": True},
        )


@pytest.fixture(scope="session")
def moto_server() -> Iterator[Moto]:
    """One server for all tests of a session."""
    server = Moto()
    try:
        server.wait()
        yield server
    finally:
        server.stop()


@pytest.fixture
def moto(moto_server: Moto) -> Moto:
    """The server, with an empty bucket."""
    moto_server.reset()
    return moto_server


if __name__ == "__main__":
    from moto.server import main

    main(["-H", "127.0.0.1", "-p", sys.argv[1]])
