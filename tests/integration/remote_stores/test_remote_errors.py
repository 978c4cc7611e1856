"""The errors of stores behind a server cross as themselves."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from scenes.served_stores import DEMAND, KIND, serving

from tailrace.model.errors import (
    InvalidPayload,
    InvalidRequest,
    NotConnected,
    Overloaded,
    StaleFence,
    StoreFull,
    TailraceError,
    Unavailable,
)
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.remote import RemoteQueue, RemoteResults


async def test_what_an_engine_refuses_is_refused_with_its_error_and_message(address: str) -> None:
    async with RemoteQueue(address) as queue:
        with pytest.raises(InvalidPayload, match="1001"):
            await queue.submit([NewItem(KIND, bytes(1001))])
        with pytest.raises(InvalidRequest, match="a lease of"):
            await queue.lease(DEMAND, 0.0, 0.0)
        with pytest.raises(Overloaded):
            await queue.submit([NewItem(KIND, b"")] * 101)
        assert await queue.lease(DEMAND, 30.0, 0.0) is None


class Failing:
    """A Results engine that raises the error it was given."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def put(self, results: Mapping[str, bytes]) -> None:
        raise self._error

    async def put_of(self, results: Mapping[str, bytes], tenants: Mapping[str, str]) -> None:
        raise self._error

    async def get(self, id: str) -> bytes | None:
        raise self._error

    async def gone(self, id: str) -> bool:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        InvalidPayload("the payload is a list"),
        InvalidRequest("no such thing"),
        NotConnected("the results store is closed"),
        Overloaded("later", 7.5),
        StaleFence("too old"),
        StoreFull("no room on /data"),
        Unavailable("not now"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_error_of_a_store_crosses_as_itself(error: TailraceError) -> None:
    async with serving({"results": Failing(error)}) as address, RemoteResults(address) as results:
        with pytest.raises(type(error)) as raised:
            await results.put({"id": b""})

    assert (type(raised.value), str(raised.value)) == (type(error), str(error))
    assert getattr(raised.value, "retry_after", None) == getattr(error, "retry_after", None)


async def test_a_fault_in_an_engine_is_an_error_that_names_the_call_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving({"results": Failing(ZeroDivisionError("oops"))}) as address, RemoteResults(address) as results:
        with pytest.raises(TailraceError, match=r"results\.get failed: .*oops"):
            await results.get("id")

    assert "failed at get" in caplog.text
