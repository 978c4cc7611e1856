"""Callers of a delay service that are known by certificate: a kind that a caller may not push it may not park
either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from scenes.fleet import Fleet

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.peer_check import GRANTS
from tailrace.model.errors import InvalidRequest
from tailrace.model.grants import read_grants
from tailrace.model.parked import Parked
from tailrace.model.workload import Kind
from tailrace.wire.channel import serve
from tailrace.wire.delay import DelayClient, Depth, register


class Kept:
    """A delay service that only keeps what it is given."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def park(self, items: Sequence[Parked]) -> None:
        self.ids += [item.id for item in items]

    async def depth(self) -> list[Depth]:
        return []


def parked(id: str, function: str, tenant: str = "") -> Parked:
    now = SYSTEM_CLOCK.wall()
    return Parked("crm", id, Kind(function, 1, "", tenant), b"x", now + 60.0, now)


async def test_a_tailer_parks_only_what_it_may_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a delay service that gives a tailer less than its role
    fleet, kept = Fleet(tmp_path / "fleet", monkeypatch), Kept()
    given = GRANTS.set(read_grants({"tailer/crm-*": ["submit:crm.*@acme"]}))
    try:
        with fleet.as_(fleet.issue("node")):
            server, address = await serve("tls:127.0.0.1:0", [register(kept)])
    finally:
        GRANTS.reset(given)
    try:
        # When it parks, Then only that which it may submit is taken
        with fleet.as_(fleet.issue("tailer", "crm-1")):
            async with DelayClient(address) as client:
                await client.park([parked("a", "crm.mail", "acme"), parked("b", "crm.call", "acme")])
                for function, tenant, needs in (("pay", "acme", "pay@acme"), ("crm.mail", "", "crm.mail")):
                    with pytest.raises(
                        InvalidRequest, match=f"tailer crm-1 of fleet f1 may not do this: .* submit:{needs}, and has"
                    ):
                        await client.park([parked("c", "crm.mail", "acme"), parked("d", function, tenant)])
                await client.depth()
        with fleet.as_(fleet.issue("tailer", "other")):
            async with DelayClient(address) as client:
                await client.park([parked("e", "pay")])
    finally:
        await server.stop(None)
    assert kept.ids == ["a", "b", "e"]
