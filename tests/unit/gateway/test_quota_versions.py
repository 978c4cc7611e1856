"""Versions of quotas: a change that changes nothing makes none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.gateway.commands import quotas
from tailrace.model.limits import Quota, QuotaChange, Snapshot
from tailrace.sdk import found_gateway


class AskedClient:
    """A gateway's client that keeps the changes it is asked to apply."""

    def __init__(self) -> None:
        self.applied: list[QuotaChange] = []

    def apply_quotas(self, change: QuotaChange) -> int:
        self.applied.append(change)
        return 58


def test_what_changes_nothing_is_no_new_version(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given quotas of version 40 in a store whose other changes came to 57
    client = AskedClient()

    def ask(gateway: str | None, call: Callable[[AskedClient], Any]) -> Any:
        return call(client)

    monkeypatch.setattr(found_gateway, "ask", ask)
    snapshot = Snapshot(57, quotas=[Quota("f", 5)], quotas_version=40)
    # When they are made what they are, as by a rollback that is said twice, Then that is version 40, and not 57
    assert quotas._apply(None, snapshot, [Quota("f", 5)], "again") == (40, False)
    assert not client.applied
    # And others are a new version
    assert quotas._apply(None, snapshot, [Quota("f", 6)], "more") == (58, True)
    assert [change.version for change in client.applied] == [40]
