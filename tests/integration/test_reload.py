"""The files of a configuration directory are read again while everything runs; a broken one changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tailrace.assembly import reloading
from tailrace.assembly.node import Node
from tailrace.model.errors import ConfigError, InvalidRequest, Unavailable
from tailrace.model.limits import Quota
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.supervisor import Tailers
from tailrace.tailers.tailer import Tailer
from tailrace.wire.gateway import GatewayClient

from ..scenes import lone_node
from ..scenes.lone_node import until

ORDERS = "name: orders\nsource: {kind: log, stream: orders}\nfunction: charge\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration directory with a quota, a schedule and a tailer."""
    folder = tmp_path / "config"
    (folder / "tailers").mkdir(parents=True)
    (folder / "gateway.yaml").write_text("look_every: 0\n")
    (folder / "quotas.yaml").write_text("functions:\n  charge: {concurrency: 2}\n  mail: {rate: 5}\n")
    (folder / "schedules.yaml").write_text("schedules:\n  nightly: {cron: '0 3 * * *', function: charge}\n")
    (folder / "tailers" / "orders.yaml").write_text(ORDERS)
    return folder


@pytest.fixture
async def node(tmp_path: Path, config: Path) -> AsyncIterator[Node]:
    async with lone_node.node(tmp_path, config) as running:
        yield running


async def state(operator: GatewayClient) -> tuple[dict[str, int], list[str]]:
    """Concurrency by function or tenant, and the tailers that run, but for the one that comes with a schedule."""
    quotas, tailers = (await operator.limits()).quotas, (await operator.overview()).tailers
    return {quota.function or quota.tenant: quota.concurrency for quota in quotas}, [
        each.name for each in tailers if each.name != "schedules"
    ]


async def test_what_is_new_in_the_files_is_in_force_and_what_needs_a_restart_is_told(node: Node, config: Path) -> None:
    async with GatewayClient(node.address) as operator:
        assert await state(operator) == ({"charge": 2, "mail": 0}, ["orders", "queue"])
        assert await operator.reload() == []
        # Given an operator's own quota, and files that add, change and remove
        await operator.set_quota(Quota(tenant="acme", concurrency=7))
        (config / "quotas.yaml").write_text("functions:\n  charge: {concurrency: 3}\n")
        (config / "schedules.yaml").write_text("schedules:\n  hourly: {every: 1h, function: charge}\n")
        (config / "tailers" / "bills.yaml").write_text(ORDERS.replace("orders", "bills"))
        (config / "tailers" / "orders.yaml").write_text(ORDERS + "results: true\n")
        (config / "delay.yaml").write_text("listen: 127.0.0.1:0\n")
        before = node._tailers.tailer("orders")
        # When they are read again
        changes = await operator.reload()
        # Then it is told what came of each
        assert {(Path(each.file).name, each.change): each.effect for each in changes} == {
            ("quotas.yaml", "changed"): "in force",
            ("schedules.yaml", "changed"): "in force",
            ("delay.yaml", "changed"): "takes effect when its part is started again",
            ("bills.yaml", "tailer bills added"): "in force",
            ("orders.yaml", "tailer orders changed"): "in force",
        }
        # And so it is: what the file no longer says is gone, what somebody set by hand is not
        assert await state(operator) == ({"charge": 3, "acme": 7}, ["bills", "orders", "queue"])
        assert [each.schedule.name for each in await operator.schedules()] == ["hourly"]
        after = node._tailers.tailer("orders")
        assert after is not before and after is not None and after.config.results
        # And a tailer whose file is gone ends
        (config / "tailers" / "bills.yaml").unlink()
        assert [each.change for each in await operator.reload()] == ["tailer bills removed"]
        assert await state(operator) == ({"charge": 3, "acme": 7}, ["orders", "queue"])


async def test_a_broken_file_changes_nothing_and_is_told_until_it_is_right(node: Node, config: Path) -> None:
    async with GatewayClient(node.address) as operator:
        # Given a file that is right and one that is not
        (config / "quotas.yaml").write_text("functions:\n  charge: {concurrency: 9}\n")
        (config / "tailers" / "orders.yaml").write_text(ORDERS + "resluts: true\n")
        # When they are read again
        with pytest.raises(InvalidRequest, match=r"orders\.yaml:4: unknown key 'resluts'"):
            await operator.reload()
        # Then the former ones are in force, and operators are told
        assert await state(operator) == ({"charge": 2, "mail": 0}, ["orders", "queue"])
        [alert] = [each for each in (await operator.overview()).alerts if "resluts" in each.what]
        assert (alert.subject, "the former files are in force" in alert.todo) == ("configuration", True)
        # And once it is right all of it is
        (config / "tailers" / "orders.yaml").write_text(ORDERS)
        assert [each.file for each in await operator.reload()] == ["quotas.yaml"]
        assert (await state(operator))[0] == {"charge": 9}
        assert not [each for each in (await operator.overview()).alerts if each.subject == "configuration"]


async def test_a_tailer_that_cannot_start_as_its_file_says_goes_on_as_it_was(
    node: Node, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Tailer.start

    async def fails(tailer: Tailer) -> None:
        if tailer.config.results:
            raise ConfigError("planted")
        await start(tailer)

    monkeypatch.setattr(Tailer, "start", fails)
    async with GatewayClient(node.address) as operator:
        (config / "tailers" / "orders.yaml").write_text(ORDERS + "results: true\n")
        [change] = await operator.reload()
        assert change.effect == "not in force: planted"
        tailer = node._tailers.tailer("orders")
        assert tailer is not None and not tailer.config.results
        # And asked again it is tried again
        monkeypatch.setattr(Tailer, "start", start)
        assert [each.effect for each in await operator.reload()] == ["in force"]


async def test_a_tailer_named_as_the_nodes_own_changes_nothing_and_is_told_until_it_is_another_name(
    node: Node, config: Path
) -> None:
    async with GatewayClient(node.address) as operator:
        # Given a file that is right, and a tailer with the name of the one that the node has by itself
        (config / "quotas.yaml").write_text("functions:\n  charge: {concurrency: 9}\n")
        (config / "tailers" / "bills.yaml").write_text(ORDERS.replace("name: orders", "name: queue"))
        # When they are read again, and once more
        for _ in range(2):
            with pytest.raises(InvalidRequest, match=r"nothing was changed(.|\n)*two tailers are named 'queue'"):
                await operator.reload()
        # Then nothing was changed, and operators are told
        assert await state(operator) == ({"charge": 2, "mail": 0}, ["orders", "queue"])
        assert [each for each in (await operator.overview()).alerts if each.subject == "configuration"]
        # And under another name all of it is in force
        (config / "tailers" / "bills.yaml").write_text(ORDERS.replace("name: orders", "name: bills"))
        assert [each.change for each in await operator.reload()] == ["changed", "tailer bills added"]
        assert await state(operator) == ({"charge": 9}, ["bills", "orders", "queue"])


async def test_what_was_not_done_since_something_is_away_is_told_and_done_with_the_next_reload(
    node: Node, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with GatewayClient(node.address) as operator:
        # Given files with another quota and another tailer, of which the tailer cannot be changed now
        (config / "quotas.yaml").write_text("functions:\n  charge: {concurrency: 9}\n")
        (config / "tailers" / "orders.yaml").write_text(ORDERS + "results: true\n")
        monkeypatch.setattr(Tailers, "reconfigure", _away)
        # When they are read again, Then it is told what is in force, and it is an alert
        with pytest.raises(Unavailable, match=r"planted; in force so far: quotas\.yaml"):
            await operator.reload()
        assert (await state(operator))[0] == {"charge": 9}
        [alert] = [each for each in (await operator.overview()).alerts if each.subject == "configuration"]
        assert "planted" in alert.what
        # And the next one does the rest
        monkeypatch.undo()
        assert [each.change for each in await operator.reload()] == ["tailer orders changed"]
        assert not [each for each in (await operator.overview()).alerts if each.subject == "configuration"]


async def _away(*_: object) -> dict[str, str]:
    raise Unavailable("planted")


async def test_who_waits_no_more_stops_nothing_half_way(node: Node, config: Path) -> None:
    async with GatewayClient(node.address) as operator:
        (config / "tailers" / "orders.yaml").write_text(ORDERS + "results: true\n")
        asked = asyncio.create_task(node._reloading.reload())
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

        async def changed() -> bool:
            tailer = node._tailers.tailer("orders")
            return tailer is not None and tailer.config.results

        await until(changed)
        assert await operator.reload() == []


async def test_files_that_are_watched_are_read_again_by_themselves(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "LOOK_EVERY", 0.05)
    async with lone_node.node(tmp_path, config, watch=True) as running, GatewayClient(running.address) as operator:
        (config / "quotas.yaml").write_text("functions:\n  charge: {concurrency: 11}\n")

        async def applied() -> bool:
            return (await state(operator))[0] == {"charge": 11}

        await until(applied)
        # And what was not done is tried again without another change
        reconfigure, failed = Tailers.reconfigure, asyncio.Event()

        async def once(tailers: Tailers, configs: Sequence[TailerConfig]) -> dict[str, str]:
            monkeypatch.setattr(Tailers, "reconfigure", reconfigure)
            failed.set()
            raise Unavailable("planted")

        monkeypatch.setattr(Tailers, "reconfigure", once)
        (config / "tailers" / "bills.yaml").write_text(ORDERS.replace("orders", "bills"))

        async def added() -> bool:
            return "bills" in (await state(operator))[1]

        await until(added)
        assert failed.is_set()
