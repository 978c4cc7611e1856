"""What a submission gives back: a workload's id, and how to follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_client import AsyncClient
    from .client import Client
    from .model.status import WorkloadStatus


class Handle:
    """A submitted workload.

    duplicate  its dedupe key was known, and this is the first one with it
    spooled    the store was away: it is on the gateway's disk, lasts as long as that, and gets its id in the queue once
               it is there. Whether the store knows its dedupe key is not known yet
    """

    __slots__ = ("_client", "duplicate", "function", "id", "spooled")

    def __init__(
        self, client: Client, id: str, function: str, duplicate: bool = False, *, spooled: bool = False
    ) -> None:
        self._client = client
        self.id = id
        self.function = function
        self.duplicate = duplicate
        self.spooled = spooled

    def status(self) -> WorkloadStatus:
        """Where it is now. See `Client.status`."""
        return self._client.status(self.id)

    def result(self, timeout: float | str | None = None) -> Any:
        """Waits for its end and returns its value. See `Client.result`."""
        return self._client.result(self.id, timeout)

    def cancel(self) -> str:
        """Asks for its end. See `Client.cancel`."""
        return self._client.cancel(self.id)

    def __repr__(self) -> str:
        return f"<Handle {self.function} {self.id}>"


class AsyncHandle:
    """A submitted workload. `duplicate` and `spooled` as of a `Handle`."""

    __slots__ = ("_client", "duplicate", "function", "id", "spooled")

    def __init__(
        self, client: AsyncClient, id: str, function: str, duplicate: bool = False, *, spooled: bool = False
    ) -> None:
        self._client = client
        self.id = id
        self.function = function
        self.duplicate = duplicate
        self.spooled = spooled

    async def status(self) -> WorkloadStatus:
        """Where it is now. See `Client.status`."""
        return await self._client.status(self.id)

    async def result(self, timeout: float | str | None = None) -> Any:
        """Waits for its end and returns its value. See `Client.result`."""
        return await self._client.result(self.id, timeout)

    async def cancel(self) -> str:
        """Asks for its end. See `Client.cancel`."""
        return await self._client.cancel(self.id)

    def __repr__(self) -> str:
        return f"<AsyncHandle {self.function} {self.id}>"
