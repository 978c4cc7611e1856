"""The protocol between a tailer and its pump, which reads a queue, a stream, a share of one, or an outbox."""

from __future__ import annotations

from typing import Protocol

from ...model.audit import Audit
from ..pump_status import PumpStatus


class TailerPump(Protocol):
    """A pump. It lives from one opening of its source to the first error that is not a lost connection.

    draining  whether it was told to read nothing more, for good
    busy      whether something is out, or on its way into a store
    """

    draining: bool

    @property
    def busy(self) -> bool: ...

    async def run(self) -> None:
        """Opens the source and pumps until cancelled; raises the error that ends it."""

    async def drain(self, timeout: float) -> bool:
        """Reads nothing more and waits until nothing is out; False when `timeout` seconds did not suffice."""

    def pause(self, paused: bool) -> None:
        """Reads nothing more, or goes on; items that are out go on in any case. Either way the pump looks again at
        once."""

    def status(self) -> PumpStatus:
        """The state and the health of the pump now."""

    @property
    def needs_a_hand(self) -> str:
        """The cause that somebody must mend before a part of the pump goes on; empty when there is none."""

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        """Audits of the partitions: how every position of each, or of a range of one, ended. Raises InvalidRequest for
        a range that is none, and for a source that has no positions."""

    def may_seek(self) -> None:
        """Raises InvalidRequest where there is no checkpoint to move by hand."""

    async def expect(self, *functions: str) -> None:
        """Expects due items of these functions from now on; does nothing in a pump that reads no due stream. Raises
        every error of its source."""
