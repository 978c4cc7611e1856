"""The commands about workloads against a gateway: their output and their exit codes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tailrace.cli import app
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest, PartlySubmitted, Unavailable
from tailrace.sdk.client import Client


async def ran(gateway: GatewayServer, *arguments: str) -> Result:
    """A command at this gateway."""
    return await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--gateway", gateway.address])


async def test_the_result_of_a_streams_item_is_shown_by_its_position(gateway: GatewayServer, stores: Any) -> None:
    # Given an item of a stream, which no queue knows, and whose tailer kept its result
    await stores.results.put({"orders/0/5": b'{"paid":7}'})
    # When its result is asked for
    shown = await ran(gateway, "result", "orders/0/5")
    # Then it is there
    assert (shown.exit_code, json.loads(shown.stdout)) == (0, {"paid": 7})
    # And of another one it is said that nobody knows it
    strange = await ran(gateway, "result", "orders/0/6")
    assert (strange.exit_code, strange.stdout) == (1, "")
    assert "no workload 'orders/0/6' is known" in strange.stderr


async def test_a_time_that_is_none_is_wrong_input_though_the_workload_is_unknown(gateway: GatewayServer) -> None:
    # When a result is waited for until no time, Then that is told, and not that nobody knows the workload
    wrong = await ran(gateway, "result", "orders/0/6", "--timeout", "soon")
    assert isinstance(wrong.exception, InvalidRequest) and "soon" in str(wrong.exception)


@pytest.mark.parametrize("as_json", [False, True])
async def test_copies_that_were_accepted_before_a_failure_are_told(
    gateway: GatewayServer, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    # Given a gateway that takes a thousand copies and some of the next ones, and then is away
    submit_many, whole = Client.submit_many, [True]

    def fails(client: Client, calls: Any, **options: Any) -> Any:
        if whole and whole.pop():
            return submit_many(client, calls, **options)
        raise PartlySubmitted("the gateway is away", submit_many(client, calls[:7], **options))

    monkeypatch.setattr(Client, "submit_many", fails)
    # When many copies are submitted
    done = await ran(gateway, "submit", "add", "a=1", "--count", "3000", *(["--json"] if as_json else []))
    # Then it is told how many were accepted, and why no more
    assert done.exit_code == 1
    ids = [each.id for each in (await found(gateway))]
    assert len(ids) == 1007
    assert isinstance(done.exception, PartlySubmitted)
    assert str(done.exception).startswith(f"1007 of 3000 were submitted, {ids[0]} … {ids[-1]}; none is known to be of")
    assert str(done.exception).endswith(": the gateway is away")
    assert [each["id"] for each in json.loads(done.stdout)] == ids if as_json else not done.stdout


async def test_who_interrupts_a_submission_is_told_how_far_it_came(
    gateway: GatewayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a person who presses Ctrl-C while the second thousand copies are on their way
    submit_many, whole = Client.submit_many, [True]

    def interrupted(client: Client, calls: Any, **options: Any) -> Any:
        if whole and whole.pop():
            return submit_many(client, calls, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "submit_many", interrupted)
    # When many copies are submitted
    done = await ran(gateway, "submit", "add", "a=1", "--count", "1500")
    # Then it is told which were accepted, and of how many that is not known
    ids = [each.id for each in (await found(gateway))]
    assert (done.exit_code, len(ids)) == (130, 1000)
    told = f"interrupted: 1000 of 1500 were submitted, {ids[0]} … {ids[-1]}; whether the next 500 were is not known"
    assert told in done.stderr


async def test_when_no_copy_was_accepted_only_why_is_told(
    gateway: GatewayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a gateway that is away
    def fails(client: Client, calls: Any, **options: Any) -> Any:
        raise Unavailable("the gateway is away")

    monkeypatch.setattr(Client, "submit_many", fails)
    # When copies are submitted, Then the error says it all
    done = await ran(gateway, "submit", "add", "a=1", "--count", "3000")
    assert isinstance(done.exception, Unavailable)
    assert "were submitted" not in done.stderr


async def found(gateway: GatewayServer) -> list[Any]:
    """All workloads, in the order in which they were submitted."""

    def find() -> list[Any]:
        with Client(gateway.address) as client:
            return [*reversed(client.find(limit=5000))]

    return await asyncio.to_thread(find)
