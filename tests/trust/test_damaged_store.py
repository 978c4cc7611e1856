"""A damaged page of a store's file: one clear error, no traceback."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from scenes import commands
from scenes.lone_node import node

import tailrace
from tailrace.model.function_spec import FunctionSpec
from tailrace.wire.gateway import GatewayClient

PAGE = 4096


@pytest.mark.trust(point=15)
@pytest.mark.parametrize("pages", [range(1, 2), range(1, 12), range(12, 40)])
async def test_a_damaged_page_is_named_with_what_to_do_and_no_traceback(tmp_path: Path, pages: range) -> None:
    # Given a queue's file of which some pages were overwritten
    async with node(tmp_path) as running:
        gateway = running.addresses["gateway"]
        async with GatewayClient(gateway) as operator, tailrace.AsyncClient(gateway) as client:
            await operator.register_functions("test", [FunctionSpec("work")])
            await client.submit_many(tailrace.Call("work", text="x" * 300) for _ in range(500))
    file = tmp_path / "data" / "queue.db"
    with file.open("r+b") as opened:
        for page in pages:
            opened.seek(page * PAGE)
            opened.write(os.urandom(PAGE))
    # When a node is started on it
    config = tmp_path / "config"
    config.mkdir()
    for name in ("gateway", "delay", "stores"):
        (config / f"{name}.yaml").write_text("listen: 127.0.0.1:0\n")
    ran = await asyncio.to_thread(commands.tailrace, "node", "--config", str(config), "--data", str(tmp_path / "data"))
    # Then it ends with an error that names the file, and says what is wrong and what to do
    said = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode == 1 and "Traceback" not in ran.stderr
    assert str(file) in said and "The file is damaged" in said and "tailrace store restore" in said
