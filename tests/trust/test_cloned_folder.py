"""A node whose data folder was copied, beside a state on a server: never two logs under the checkpoints of one."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scenes import commands
from scenes.lone_node import node

import tailrace


def on_postgres(request: pytest.FixtureRequest) -> dict[str, Any]:
    names = "postgres_server", "postgres_schema"
    url, schema = [request.getfixturevalue(name) for name in names]
    return {"engine": "postgres", "url": url, "schema": schema}


def on_redis(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"engine": "redis", "url": request.getfixturevalue("redis_server"), "prefix": "cloned"}


@pytest.fixture(params=[on_postgres, on_redis])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A configuration with the state on a server."""
    state: Callable[[pytest.FixtureRequest], dict[str, Any]] = request.param
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "stores.yaml").write_text(json.dumps({"state": state(request), "durability": "relaxed"}))
    yield folder


async def copied(folder: Path, other: Path) -> Path:
    """Copies a data folder, as an image of its disk."""
    other.mkdir()
    await asyncio.to_thread(subprocess.run, ["cp", "-a", folder / "data", other / "data"], check=True)
    return other


@pytest.mark.trust(point=5)
async def test_a_copied_folder_is_refused_beside_its_node_and_one_that_was_left_behind_after_it(
    tmp_path: Path, config: Path
) -> None:
    # Given a node whose state is on a server, and copies of its folder from before its present run and from it
    first = tmp_path / "first"
    async with node(first, config):
        pass
    early = await copied(first, tmp_path / "early")
    async with node(first, config):
        late = await copied(first, tmp_path / "late")
        # When a node starts on a copy while the first one runs, then it is refused, and told who runs
        for copy in (early, late):
            with pytest.raises(tailrace.TailraceError, match=r"another node of this name runs .*first") as refused:
                async with node(copy, config):
                    pass
            assert "tailrace.node" in str(refused.value)
    # And once it has ended, these copies are refused too, since their logs end earlier
    for copy in (early, late):
        with pytest.raises(tailrace.TailraceError, match="a copy of this folder ran since"):
            async with node(copy, config):
                pass
    # And one that has what the last run left goes on with it; from then on the first folder is the one left behind
    moved = await copied(first, tmp_path / "moved")
    async with node(moved, config):
        pass
    with pytest.raises(tailrace.TailraceError, match="a copy of this folder ran since"):
        async with node(first, config):
            pass
    async with node(moved, config):
        pass
    # And where that copy is gone, the operator says which one it is to be
    said = await asyncio.to_thread(commands.tailrace, "store", "rebind", "--data", str(first / "data"))
    assert said.returncode == 0, said.stderr
    for _ in range(2):
        async with node(first, config):
            pass
