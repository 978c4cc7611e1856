"""`state` in stores.yaml: the choice of engine; and the files that a node leaves behind when it is elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.left_behind import refuse_what_rests_in
from tailrace.foundation.config import load, loads
from tailrace.model.errors import ConfigError
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.config import StoresConfig
from tailrace.stores.control.control import Gate
from tailrace.stores.node_id import node_id, same_node
from tailrace.stores.ownership.sqlite import SqliteOwnership
from tailrace.stores.server import PROTOCOLS


def test_the_usual_engine_is_the_embedded_one(tmp_path: Path) -> None:
    stores = EmbeddedStores(tmp_path)
    assert isinstance(stores.ownership, SqliteOwnership)
    assert stores.engines().keys() == PROTOCOLS.keys() - {"delay_queue", "troubles"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("state: {engine: sqlit}", "did you mean 'sqlite'?"),
        ("state: {engine: sqlite, url: x}", 'the engine "sqlite" has no option'),
        ("state: {}", "expected an engine"),
    ],
)
def test_mistakes_are_told(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        loads(text, "stores.yaml", StoresConfig, environment={})
    assert words in str(refusal.value)


def test_the_deployed_example_puts_queue_and_state_on_one_server() -> None:
    config = load(Path(__file__).parents[3] / "deploy" / "postgres.stores.yaml", StoresConfig)
    assert config.queue == config.state
    assert (config.state["engine"], config.delay_log["engine"]) == ("postgres", "redis")


async def test_what_rests_in_the_former_state_is_not_left_behind(tmp_path: Path) -> None:
    # Given a node that kept nothing that anybody would miss
    async with EmbeddedStores(tmp_path) as stores:
        await stores.checkpoints.open("s", 1)
        await stores.results.put({"a": b"1"})
    await refuse_what_rests_in(tmp_path / "state.db")
    # When it keeps a mark and a gate, then it is told what would be missed
    async with EmbeddedStores(tmp_path) as stores:
        await stores.checkpoints.commit("s", 1, {"0": Mark(1), "1": Mark(2)})
        await stores.control.put_gate(Gate("f", "", "pause"))
    with pytest.raises(ConfigError, match=r"still has 2 checkpoints, 1 gates, and the state is configured"):
        await refuse_what_rests_in(tmp_path / "state.db")


def test_a_node_keeps_its_name_wherever_its_folder_goes(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    name = node_id(first)
    moved = first.rename(tmp_path / "moved")
    assert node_id(moved) == name
    (tmp_path / "other").mkdir()
    assert not same_node(name, node_id(tmp_path / "other"))
