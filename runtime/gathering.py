"""Arguments of runs whose payload names gathered results: with a parameter that reads them by pages, or with the list
of them within a bound."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from ..model.errors import InvalidPayload
from ..model.gathered import GatheredResults, gathered_results
from ..model.job import JobHolder
from ..sdk.gathered import Gathered, ResultReader, RunReader

#: Bytes of results, as JSON, up to which a function that takes a plain list is given one. In memory they are several
#: times as much.
MOST_LISTED = 64 << 20


def of_run(
    function: str, payload: bytes, run: JobHolder, decode: Callable[[bytes], dict[str, Any]]
) -> GatheredArguments:
    """The arguments of a run whose payload names gathered results. `decode` makes arguments of a payload."""
    return GatheredArguments(function, gathered_results(payload), RunReader(run), decode)


class GatheredArguments:
    """The arguments of one run. `read` and `awaited` raise InvalidPayload for more than a list may have."""

    def __init__(
        self, function: str, results: GatheredResults, read: ResultReader, decode: Callable[[bytes], dict[str, Any]]
    ) -> None:
        self._function, self._results, self._read, self._decode = function, results, read, decode
        self._listed: list[bytes] = []
        self._size = 0

    def read(self) -> dict[str, Any]:
        """Reads the arguments, in a run that may block."""
        found = self._by_pages()
        if found is None:
            for results in self._read.pages():
                self._add(results)
            found = self._decode(self._results.payload_of(self._listed))
        return found

    async def awaited(self) -> dict[str, Any]:
        """Reads the arguments, in asyncio."""
        found = self._by_pages()
        if found is None:
            async with contextlib.aclosing(self._read.awaited_pages()) as pages:
                async for results in pages:
                    self._add(results)
            found = self._decode(self._results.payload_of(self._listed))
        return found

    def _by_pages(self) -> dict[str, Any] | None:
        """The arguments of a function that has a parameter for pages; None: it has none."""
        try:
            arguments = self._decode(self._results.payload_of(()))
        except InvalidPayload:  # it takes no empty list
            return None
        for name, value in arguments.items():
            if isinstance(value, Gathered):
                return arguments | {name: Gathered.by_pages(self._results, self._read, self._values_of(name))}
        return None

    def _values_of(self, name: str) -> Callable[[Sequence[bytes]], list[Any]]:
        def made(results: Sequence[bytes]) -> list[Any]:
            found: Gathered[Any] = self._decode(self._results.payload_of(results))[name]
            return found.given

        return made

    def _add(self, results: Sequence[bytes]) -> None:
        self._listed += results
        self._size += sum(len(each) + 1 for each in results)
        if self._size > MOST_LISTED:
            raise InvalidPayload(
                f"{self._function}: the {self._results.total} results that it gathers have more than "
                f"{MOST_LISTED >> 20} MiB, too much for one list: annotate the parameter as tailrace.Gathered, which "
                "reads them by pages, and try again (`tailrace job retry`)"
            )
