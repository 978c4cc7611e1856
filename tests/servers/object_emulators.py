"""Azure's and Google's object stores for tests: Azurite and fake-gcs-server, each a process of its own that speaks the
real protocol over HTTP and keeps everything in memory.

python tests/servers/object_emulators.py          says which of them are to be had, and how to get the others
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import obstore
import pytest
from obstore.store import AzureStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from servers import none_to_be_had
from servers.program import Program
from tailrace.bench.process import free_ports

#: The account of every Azurite and its key, which is no secret: it is in the emulator's manual.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#: API version of the requests that are signed here.
API_VERSION = "2021-12-02"

AZURE = "TAILRACE_TEST_AZURE"
GCS = "TAILRACE_TEST_GCS"
HOW_AZURE = f"npm install --global azurite, or set {AZURE}=http://HOST:PORT/{ACCOUNT}"
HOW_GCS = f"go install github.com/fsouza/fake-gcs-server@latest, or set {GCS}=http://HOST:PORT"


def program(name: str) -> str | None:
    """The path of an emulator's program: on the path, or where Go installs."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path.home() / "go" / "bin")])
    return shutil.which(name, path=path)


def asked(
    endpoint: str, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """Makes one request below an endpoint. Returns its status and answer."""
    parts = urlsplit(endpoint)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request(method, parts.path + path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Azurite:
    """An Azure of our own. `endpoint` has the account in its path: on loopback it cannot be in a name."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def place(self) -> AzurePlace:
        """Makes a new container."""
        name = f"box-{uuid.uuid4().hex[:10]}"
        date = email.utils.formatdate(usegmt=True)
        signed = f"x-ms-date:{date}\nx-ms-version:{API_VERSION}\n/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        text = "PUT" + "\n" * 12 + signed
        signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
        headers = {
            "x-ms-date": date,
            "x-ms-version": API_VERSION,
            "Authorization": f"SharedKey {ACCOUNT}:{signature}",
            "Content-Length": "0",
        }
        status, answer = asked(self.endpoint, "PUT", f"/{name}?restype=container", headers=headers)
        assert status == 201, answer
        return AzurePlace(self.endpoint, name)


class AzurePlace:
    """A container. `keys` are those of a tailer's file under `source`, but for the kind."""

    def __init__(self, endpoint: str, container: str) -> None:
        self.keys: dict[str, Any] = {
            "url": f"az://{container}/in",
            "endpoint": endpoint,
            "credentials": {"account_name": ACCOUNT, "account_key": KEY},
        }
        self._client = AzureStore(
            container,
            prefix="in",
            endpoint=endpoint,
            account_name=ACCOUNT,
            account_key=KEY,
            client_options={"allow_http": True},
        )

    async def put(self, key: str, content: bytes) -> None:
        """Puts an object, or another version of it."""
        await obstore.put_async(self._client, key, content)

    async def remove(self, key: str) -> None:
        """Removes an object."""
        await obstore.delete_async(self._client, key)


class FakeGcs:
    """A Google Cloud Storage of our own, that asks nobody who they are."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def place(self) -> GcsPlace:
        """Makes a new bucket."""
        name = f"bucket-{uuid.uuid4().hex[:10]}"
        headers = {"Content-Type": "application/json"}
        body = json.dumps({"name": name}).encode()
        status, answer = asked(self.endpoint, "POST", "/storage/v1/b?project=tests", body, headers)
        assert status == 200, answer
        return GcsPlace(self.endpoint, name)


class GcsPlace:
    """A bucket. It is filled by the JSON API: the emulator does not take what obstore's client puts by the XML one."""

    def __init__(self, endpoint: str, bucket: str) -> None:
        self.keys: dict[str, Any] = {"url": f"gs://{bucket}/in", "endpoint": endpoint, "anonymous": True}
        self._endpoint = endpoint
        self._bucket = bucket

    async def put(self, key: str, content: bytes) -> None:
        """Puts an object, or another version of it."""
        path = f"/upload/storage/v1/b/{self._bucket}/o?uploadType=media&name={quote(f'in/{key}', safe='')}"
        status, answer = asked(self._endpoint, "POST", path, content, {"Content-Type": "application/octet-stream"})
        assert status == 200, answer

    async def remove(self, key: str) -> None:
        """Removes an object."""
        path = f"/storage/v1/b/{self._bucket}/o/{quote(f'in/{key}', safe='')}"
        status, answer = asked(self._endpoint, "DELETE", path)
        assert status in (200, 204), answer


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """One server for all tests of a session."""
    for endpoint in _endpoint(AZURE, "Azure's protocol", "azurite-blob", HOW_AZURE, _azurite):
        yield Azurite(f"{endpoint}/{ACCOUNT}" if urlsplit(endpoint).path in ("", "/") else endpoint)


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[FakeGcs]:
    """One server for all tests of a session."""
    for endpoint in _endpoint(GCS, "Google Cloud Storage's protocol", "fake-gcs-server", HOW_GCS, _fake_gcs):
        yield FakeGcs(endpoint)


def _azurite(port: int) -> list[str]:
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    return [*where, "--inMemoryPersistence", "--silent", "--disableTelemetry"]


def _fake_gcs(port: int) -> list[str]:
    where = ["-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
    return [*where, "-scheme", "http", "-backend", "memory", "-log-level", "warn"]


def _endpoint(variable: str, what: str, name: str, how: str, arguments: Callable[[int], list[str]]) -> Iterator[str]:
    """The endpoint that the environment names, or that of a program which is started here, and ended."""
    if address := os.environ.get(variable):
        print(f"\n{what}: {address}, from {variable}")
        yield address.rstrip("/")
        return
    path = program(name)
    if path is None:
        none_to_be_had(what, f"{name} is not installed: {how}")
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            asked(endpoint, "GET", "/")
        except OSError:
            return False
        return True

    with tempfile.TemporaryDirectory(prefix="tailrace-objects-") as folder:
        server = Program([path, *arguments(port)], answers, Path(folder) / "log", folder=folder)
        server.start()
        print(f"\n{what}: {endpoint}, {name} of our own")
        try:
            yield endpoint
        finally:
            server.stop()


if __name__ == "__main__":
    for name, how in (("azurite-blob", HOW_AZURE), ("fake-gcs-server", HOW_GCS)):
        print(f"{name}: {program(name) or how}")
