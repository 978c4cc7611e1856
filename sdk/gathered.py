"""The results that a gathering job gets: whole where they fit one payload, else page by page from a gateway. A function
with a parameter of type `Gathered` need not know which.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, get_args

from ..model.errors import InvalidRequest
from ..model.gathered import GatheredResults
from ..model.job import JobHolder, ResultPage

if TYPE_CHECKING:
    from pydantic_core import core_schema

T = TypeVar("T")


class ResultReader(Protocol):
    """Reads results that rest with their jobs, page by page."""

    def pages(self) -> Iterator[list[bytes]]:
        """Yields the results of each page, in a run that may block."""

    def awaited_pages(self) -> AsyncGenerator[list[bytes], None]:
        """Yields the results of each page, for asyncio."""


class Gathered(Generic[T]):
    """All results of the jobs before one that gathers: `async for` in an `async def` function, `for` in a `def` one, as
    often as one likes. `Gathered[int]` checks each; `len` is their number, `failed` the number of items without one.

    They come in the order of jobs and items, with one page in memory at a time. A test can make one of a list.
    """

    def __init__(self, values: Iterable[T] = (), *, failed: int = 0) -> None:
        self._values = list(values)
        self._read: ResultReader | None = None
        self._made: Callable[[Sequence[bytes]], list[T]] = lambda results: []
        self._count = len(self._values)
        self.failed = failed

    @classmethod
    def by_pages(
        cls, results: GatheredResults, read: ResultReader, made: Callable[[Sequence[bytes]], list[T]]
    ) -> Gathered[T]:
        """Makes one of results that `read` reads page by page; `made` turns their bytes into values."""
        found = cls(failed=sum(each.failed for each in results.jobs))
        found._count = results.total
        found._read, found._made = read, made
        return found

    @property
    def given(self) -> list[T]:
        """The results that were given whole; none where they are read by pages."""
        return self._values

    def __len__(self) -> int:
        return self._count

    async def __aiter__(self) -> AsyncIterator[T]:
        for value in self._values:
            yield value
        if self._read is not None:
            async with contextlib.aclosing(self._read.awaited_pages()) as pages:
                async for results in pages:
                    for value in self._made(results):
                        yield value

    def __iter__(self) -> Iterator[T]:
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            raise InvalidRequest("gathered results in an `async def` function: write `async for value in …`")
        return self._each()

    def _each(self) -> Iterator[T]:
        yield from self._values
        if self._read is not None:
            for results in self._read.pages():
                yield from self._made(results)

    def __repr__(self) -> str:
        return f"<Gathered {self._count} results>"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        from pydantic_core import core_schema

        listed: Any = list
        (element,) = get_args(source) or (Any,)
        return core_schema.no_info_after_validator_function(cls, handler.generate_schema(listed[element]))


class RunReader:
    """A ResultReader for the run of a gathering item (`holder`). It asks the gateway that a client finds."""

    def __init__(self, holder: JobHolder) -> None:
        self._holder = holder

    def pages(self) -> Iterator[list[bytes]]:
        from . import job_calls
        from .client import Client

        with Client() as client:
            more, after = True, ""
            while more:
                page = client._run(job_calls.gathered(client._talk, self._holder, after))
                yield _succeeded(page)
                after, more = page.after, bool(page.after)

    async def awaited_pages(self) -> AsyncGenerator[list[bytes], None]:
        from . import job_calls
        from .async_client import AsyncClient

        async with AsyncClient() as client:
            more, after = True, ""
            while more:
                page = await client._run(job_calls.gathered(client._talk, self._holder, after))
                yield _succeeded(page)
                after, more = page.after, bool(page.after)


def _succeeded(page: ResultPage) -> list[bytes]:
    return [each.result for each in page.results if each.succeeded]
