"""Handles, which a submission gives back: a workload's id, and how to follow it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from ..model.status import WorkloadStatus


class _Follows(Protocol):
    """The part of a `Client` that a handle uses."""

    def status(self, id: str, /) -> WorkloadStatus: ...

    def result(self, id: str, timeout: float | str | None, /) -> Any: ...

    def cancel(self, id: str, /) -> str: ...


class _FollowsAwaited(Protocol):
    """The part of an `AsyncClient` that a handle uses."""

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

    id         the workload's id
    function   the name of its function
    duplicate  whether its dedupe key was known: this is then the workload that was first submitted with it
    spooled    whether the store was away: the workload then rests on the gateway's disk, lasts as long as that, and
               gets its id in the queue once it is there. Nobody knows yet whether the store knows its dedupe key
    """

    __slots__ = ()

    def status(self) -> WorkloadStatus:
        """The present state of the workload. See `Client.status`."""
        return self._client.status(self.id)

    def result(self, timeout: float | str | None = None) -> Any:
        """Waits for the workload's end and returns its value. See `Client.result`."""
        return self._client.result(self.id, timeout)

    def cancel(self) -> str:
        """Asks for the workload's end. See `Client.cancel`."""
        return self._client.cancel(self.id)


class AsyncHandle(_Submitted[_FollowsAwaited]):
    """A submitted workload, with the fields of a `Handle`."""

    __slots__ = ()

    async def status(self) -> WorkloadStatus:
        """The present state of the workload. See `Client.status`."""
        return await self._client.status(self.id)

    async def result(self, timeout: float | str | None = None) -> Any:
        """Waits for the workload's end and returns its value. See `Client.result`."""
        return await self._client.result(self.id, timeout)

    async def cancel(self) -> str:
        """Asks for the workload's end. See `Client.cancel`."""
        return await self._client.cancel(self.id)
