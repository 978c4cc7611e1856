"""Handles, which a submission gives back: a workload's id, and how to follow it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from ..model.status import WorkloadStatus


class _Follows(Protocol):
    """A `Client`, as far as a handle asks it."""

    def status(self, id: str, /) -> WorkloadStatus: ...

    def result(self, id: str, timeout: float | str | None, /) -> Any: ...

    def cancel(self, id: str, /) -> str: ...


class _FollowsAwaited(Protocol):
    """An `AsyncClient`, as far as a handle asks it."""

    def status(self, id: str, /) -> Awaitable[WorkloadStatus]: ...

    def result(self, id: str, timeout: float | str | None, /) -> Awaitable[Any]: ...

    def cancel(self, id: str, /) -> Awaitable[str]: ...


C = TypeVar("C")


class _Submitted(Generic[C]):
    """The common part of both handles."""

    __slots__ = ("_client", "duplicate", "function", "id", "spooled")

    def __init__(self, client: C, id: str, function: str, duplicate: bool = False, *, spooled: bool = False) -> None:
        self._client = client
        self.id = id
        self.function = function
        self.duplicate = duplicate
        self.spooled = spooled

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.function} {self.id}>"


class Handle(_Submitted[_Follows]):
    """A submitted workload.

    duplicate  its dedupe key was known, and this is the first one with it
    spooled    the store was away: it is on the gateway's disk, lasts as long as that, and gets its id in the queue once
               it is there. Whether the store knows its dedupe key is not known yet
    """

    __slots__ = ()

    def status(self) -> WorkloadStatus:
        """Where it is now. See `Client.status`."""
        return self._client.status(self.id)

    def result(self, timeout: float | str | None = None) -> Any:
        """Waits for its end and returns its value. See `Client.result`."""
        return self._client.result(self.id, timeout)

    def cancel(self) -> str:
        """Asks for its end. See `Client.cancel`."""
        return self._client.cancel(self.id)


class AsyncHandle(_Submitted[_FollowsAwaited]):
    """A submitted workload. `duplicate` and `spooled` as of a `Handle`."""

    __slots__ = ()

    async def status(self) -> WorkloadStatus:
        """Where it is now. See `Client.status`."""
        return await self._client.status(self.id)

    async def result(self, timeout: float | str | None = None) -> Any:
        """Waits for its end and returns its value. See `Client.result`."""
        return await self._client.result(self.id, timeout)

    async def cancel(self) -> str:
        """Asks for its end. See `Client.cancel`."""
        return await self._client.cancel(self.id)
