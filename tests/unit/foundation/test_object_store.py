"""The client of the object stores: answers that are not believed, and errors in words of its own."""

from __future__ import annotations

from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from tailrace.foundation import objects
from tailrace.foundation.object_places import Place
from tailrace.foundation.objects import ObjectStore
from tailrace.model.errors import NotConnected

LIST = "Error performing list request: Error performing GET http://127.0.0.1:1/box in 4ms - "
LIST += "Server returned non-2xx status code:"


async def test_a_store_that_does_not_know_where_to_begin_lists_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a store that leaves the offset out of account, as Azurite does but for the key itself
    client, listing = MemoryStore(), obstore.list
    for number in range(20):
        obstore.put(client, f"{number:02}", b"x")
    monkeypatch.setattr(obstore, "list", lambda store, offset, chunk_size: listing(store, chunk_size=chunk_size))
    # When it is listed from a key on
    store = ObjectStore(Place(url="memory:///"), client)
    pages = [[each.key for each in page] async for page in store.pages("11", 5)]
    # Then only what comes after it is handed on
    assert pages == [["12", "13", "14"], ["15", "16", "17", "18", "19"]]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (f"{LIST} 403 Forbidden: <?xml?>\n<Code>NoEntry</Code>", "check credentials"),
        (f"{LIST} 401 Unauthorized: ", "check credentials and policy"),
        (
            f"{LIST} 404 Not Found: <?xml ?>\n<Code>NoBox</Code>",
            "there: .*: NoBox$",
        ),
        (f"{LIST} 503 Slow Down: ", "503 Slow Down"),
        ("Error performing token request: Error performing GET http://metadata", "or write anonymous: true"),
        ("Account must be specified", "write its account_name under credentials"),
    ],
)
async def test_what_a_listing_says_tells_what_to_do(answer: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise GenericError(f"Generic MicrosoftAzure error: {answer}\n\nDebug source:\n…")

    monkeypatch.setattr(objects.obstore, "list", refuse)
    with pytest.raises(NotConnected, match=told) as caught:
        [page async for page in ObjectStore(Place(url="memory:///"), MemoryStore()).pages("", 5)]
    assert str(caught.value).startswith("memory:///") and "\n" not in str(caught.value)
