"""The two clients: both take and return the same values."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tailrace

CORE = ("status", "status_many", "find", "result", "cancel", "cancel_many", "reschedule", "peek")
SCHEDULES = ("schedule", "schedules", "unschedule", "pause_schedule", "resume_schedule")
OWN = ("submit", "submit_many", "close")


def methods(client: type) -> list[str]:
    return sorted(name for name in vars(client) if not name.startswith("_"))


def parameters(method: Any) -> list[tuple[str, Any, Any]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]


def test_both_have_the_same_methods_with_the_same_arguments() -> None:
    assert methods(tailrace.Client) == methods(tailrace.AsyncClient) == sorted((*CORE, *SCHEDULES, *OWN))
    for name in methods(tailrace.Client):
        blocking, awaited = getattr(tailrace.Client, name), getattr(tailrace.AsyncClient, name)
        assert parameters(blocking) == parameters(awaited), name
        assert inspect.iscoroutinefunction(awaited) and not inspect.iscoroutinefunction(blocking)


@pytest.mark.parametrize("name", CORE + SCHEDULES)
def test_what_is_of_the_core_is_documented_once(name: str) -> None:
    assert getattr(tailrace.Client, name).__doc__ == getattr(tailrace.AsyncClient, name).__doc__


@pytest.mark.parametrize("client", [tailrace.Client, tailrace.AsyncClient])
def test_submit_shows_what_a_call_takes(client: type) -> None:
    assert parameters(client.submit)[1:] == parameters(tailrace.Call)  # type: ignore[attr-defined]
    assert client.submit.__name__ == "submit"  # type: ignore[attr-defined]
    assert "one workload" in client.submit.__doc__  # type: ignore[attr-defined]


async def test_a_call_that_cannot_be_made_is_refused_when_it_is_awaited() -> None:
    async with tailrace.AsyncClient("127.0.0.1:1") as client:
        wrong = client.submit("work", 1)
        with pytest.raises(tailrace.InvalidRequest, match="by its name"):
            await wrong
