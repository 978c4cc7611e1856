"""The results that a job which gathers is given, whatever there is of them: given whole where they fit one payload,
read by pages from a gateway where they do not. A function with a parameter of this type need not know which it is.
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
    """Results that lie with their jobs, page by page."""

    def pages(self) -> Iterator[list[bytes]]:
        """Some of them at a time, to a run that may block."""

    def awaited_pages(self) -> AsyncGenerator[list[bytes], None]:
        """The same for asyncio."""


class Gathered(Generic[T]):
    """All results of the jobs before one that gathers: `async for` in an `async def` function, `for` in a `def` one, as
    often as one likes. `Gathered[int]` checks each; `len` is how many there are, `failed` how many items have none.

    They are in the order of jobs and items, and in memory by pages. A test can make one of a list.
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
        """Of results that are read: `made` makes values of some of them."""
        found = cls(failed=sum(each.failed for each in results.jobs))
        found._count = results.total
        found._read, found._made = read, made
        return found

    @property
    def given(self) -> list[T]:
        """The results that were given whole."""
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
    """A ResultReader of the run that has an item: it asks the gateway that a client finds."""

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
