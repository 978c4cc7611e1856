"""Commands about quotas, and the ways in which they tell their findings, without a gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import typer

from tailrace.gateway.commands.quotas import quota_set, quota_unset
from tailrace.model.limits import Quota, QuotaChange, Snapshot
from tailrace.sdk import found_gateway


class Known:
    """A gateway's quotas, and changes that it was asked to apply."""

    def __init__(self, *quotas: Quota) -> None:
        self.quotas = quotas
        self.applied: list[QuotaChange] = []

    def limits(self) -> Snapshot:
        return Snapshot(quotas=list(self.quotas))

    def apply_quotas(self, change: QuotaChange) -> int:
        self.applied.append(change)
        return 1


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    found = Known(Quota("greet", 5), Quota("greet", rate=2, tenant="acme"))

    def ask(gateway: str | None, call: Callable[[Any], Any]) -> Any:
        return call(found)

    monkeypatch.setattr(found_gateway, "ask", ask)
    return found


def test_a_quota_that_there_is_not_is_not_said_to_be_removed(known: Known, capsys: pytest.CaptureFixture[str]) -> None:
    # When somebody removes one of a name that is wrong by a letter, or of a tenant that has none
    for given, says in (
        ({"function": "gret"}, "gret has no quota, so nothing was changed; did you mean 'greet'?"),
        ({"tenant": "acme"}, "tenant acme has no quota"),
    ):
        with pytest.raises(typer.Exit) as ended:
            quota_unset(**given)
        # Then nothing is said to be done
        out, err = capsys.readouterr()
        assert (ended.value.exit_code, out, known.applied) == (1, "", [])
        assert says in " ".join(err.split())


def test_one_that_there_is_goes_and_the_others_stay(known: Known, capsys: pytest.CaptureFixture[str]) -> None:
    quota_unset("greet", tenant="acme")
    assert capsys.readouterr().out == "function greet × tenant acme: no limits\n"
    [change] = known.applied
    assert change.quotas == (Quota("greet", 5),)
    # And to set nothing for what has nothing says what is so
    quota_set("other")
    assert capsys.readouterr().out == "other: no limits\n" and len(known.applied) == 1
