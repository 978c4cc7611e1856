"""Arguments of gathered results that fit no payload: read by pages, or a list within its bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Annotated, Any

import pydantic
import pytest

import tailrace
from tailrace.model.errors import InvalidPayload, InvalidRequest
from tailrace.model.gathered import BEGIN, GatheredJob, GatheredResults, gathered_results
from tailrace.runtime import gathering
from tailrace.runtime.gathering import GatheredArguments

RESULTS = GatheredResults("job-1", (GatheredJob("a", 3, 1), GatheredJob("ä", 2, 0)), b'{"values":', b"}")


class Pages:
    """A ResultReader of these pages, which counts those that were read."""

    def __init__(self, *pages: list[bytes]) -> None:
        self._pages = pages
        self.asked = 0

    def pages(self) -> Iterator[list[bytes]]:
        for each in self._pages:
            self.asked += 1
            yield each

    async def awaited_pages(self) -> AsyncGenerator[list[bytes], None]:
        for each in self.pages():
            yield each


@tailrace.function
async def total(values: tailrace.Gathered[int]) -> int:
    return sum([value async for value in values])


@tailrace.function
def total_in_thread(values: tailrace.Gathered[int], start: int = 0) -> int:
    return sum(values, start)


@tailrace.function
async def of_a_list(values: Annotated[list[int], pydantic.Field(min_length=1)]) -> int:
    return sum(values)


@tailrace.function
async def raw(values: bytes) -> int:
    return len(values)


def arguments(function: Any, pages: Pages, results: GatheredResults = RESULTS) -> GatheredArguments:
    return GatheredArguments(function.name, results, pages, function.arguments.decode)


def test_a_payload_that_names_results_is_told_by_its_beginning() -> None:
    payload = RESULTS.encode()
    assert payload.startswith(BEGIN)
    assert gathered_results(payload) == RESULTS
    assert (RESULTS.total, RESULTS.payload_of([b"1", b"2"])) == (5, b'{"values":[1,2]}')
    for odd in (BEGIN, BEGIN + b"1}", BEGIN + b'{"tree":"t","jobs":[1]}}', BEGIN + b"{}}"):
        with pytest.raises(InvalidPayload, match="names gathered results but cannot be read"):
            gathered_results(odd)


async def test_a_parameter_for_it_reads_page_by_page_and_as_often_as_one_likes() -> None:
    # Given pages of which the last one does not fit the type
    pages = Pages([b"1", b"2"], [], [b"3"])
    found = (await arguments(total, pages).awaited())["values"]
    # Then nothing is read before somebody asks, and each look reads anew
    assert (len(found), found.failed, pages.asked) == (5, 1, 0)
    for _ in range(2):
        assert await total(found) == 6
    first = await anext(aiter(found))
    assert (first, pages.asked) == (1, 7)


async def test_each_page_is_held_to_the_type() -> None:
    found = (await arguments(total, Pages([b"1"], [b'"x"'])).awaited())["values"]
    with pytest.raises(InvalidPayload, match=r"total: argument 'values\.0'"):
        await total(found)


async def test_a_function_in_a_thread_reads_them_with_for() -> None:
    found = await asyncio.to_thread(arguments(total_in_thread, Pages([b"1", b"2"], [b"3"])).read)
    assert await asyncio.to_thread(lambda: total_in_thread(**found)) == 6
    with pytest.raises(InvalidRequest, match="write `async for value in"):
        iter(found["values"])


async def test_a_plain_list_is_put_together() -> None:
    for function, given in ((of_a_list, [1, 2, 3]), (raw, b'{"values":[1,2,3]}')):
        pages = Pages([b"1", b"2"], [b"3"])
        assert await arguments(function, pages).awaited() == {"values": given}
        assert await asyncio.to_thread(arguments(function, pages).read) == {"values": given}


async def test_a_list_beyond_its_bound_fails_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "MOST_LISTED", 5)
    pages = Pages([b"1", b"2"], [b"3"], [b"4"])
    with pytest.raises(
        InvalidPayload, match=r"of_a_list: the 5 results .* annotate the parameter as tailrace.Gathered"
    ):
        await arguments(of_a_list, pages).awaited()
    assert pages.asked == 2, "and reads no further"


async def test_results_that_were_given_whole_are_gone_over_likewise() -> None:
    # Given a payload with the list, and one that a test makes itself
    decoded = total.arguments.decode(b'{"values":[1,2]}')["values"]
    for found in (decoded, tailrace.Gathered([1, 2])):
        assert (len(found), found.failed) == (2, 0)
        assert await total(found) == 3
        assert await asyncio.to_thread(lambda found=found: total_in_thread(found, 1)) == 4  # type: ignore[misc]
    # And what is no list of the type is refused as any argument is
    with pytest.raises(InvalidPayload, match=r"argument 'values\.1'"):
        total.arguments.decode(b'{"values":[1,"x"]}')
    assert '"array"' in total.arguments.schema
