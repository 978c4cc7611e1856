"""A log that is a file of one node is read there only, whenever its first tailer comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import ConfigError
from tailrace.stores.bindings import binding_of
from tailrace.stores.node_id import node_id


async def test_a_log_that_another_node_has_bound_is_refused_as_often_as_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a state that goes with the log of another node
    (tmp_path / "other").mkdir()
    other = node_id(tmp_path / "other")
    async with EmbeddedStores(tmp_path / "data") as stores:
        bound = {"log": other}

        async def rebind(what: str, seen: str, text: str) -> str:
            if bound.get(what, "") == seen:
                bound[what] = text
            return bound.get(what, "")

        monkeypatch.setattr(stores.state.ground, "rebind", rebind)
        # When a tailer is to read this node's log, and is wished for again
        for _ in range(2):
            # Then it is refused each time
            with pytest.raises(ConfigError, match="goes with the `log` of another node"):
                await stores.reads_log_now()
        # And once the log is this node's it is not
        bound.clear()
        await stores.reads_log_now()
        assert binding_of(bound["log"]).node == node_id(tmp_path / "data")
