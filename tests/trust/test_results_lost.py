"""A result is what the function returned, or an error that says what became of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tailrace
from tailrace import AsyncClient, Call
from tailrace.assembly.platform import Platform

FUNCTIONS = '''
import math
import tailrace

@tailrace.function
def large(size: int) -> str:
    return "x" * size

@tailrace.function
def nothing() -> None:
    pass

@tailrace.function
def odd(sign: int) -> dict[str, list[float]]:
    """Returns a number that JSON does not have, deep within."""
    return {"values": [1.0, math.inf * sign if sign else math.nan]}
'''


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    config = tmp_path / "config"
    (config / "tailers").mkdir(parents=True)
    (config / "stores.yaml").write_text("result_bytes: 100KiB\n")
    (config / "tailers" / "queue.yaml").write_text("name: queue\nsource: {kind: queue}\nresults: true\n")
    running = Platform(tmp_path / "data", [str(tmp_path / "shop.py")], config, heartbeat=0.5)
    try:
        await running.start()
        yield running
        await running.drain(10)
    finally:
        await running.stop()


@pytest.mark.trust(point=10)
async def test_a_result_that_was_pushed_out_is_an_error_and_not_none(platform: Platform) -> None:
    async with AsyncClient(platform.gateway_address) as client:
        # Given a workload that returned nothing, and one that returned something, which is there
        [none, first] = await client.submit_many([Call("nothing"), Call("large", size=40_000)])
        assert await first.result(timeout=20) == "x" * 40_000
        # When later ones need its room
        for _ in range(3):
            last = await client.submit("large", size=40_000)
            await last.result(timeout=20)
        # Then who asks for it is told so, and the others are what they are
        with pytest.raises(tailrace.TailraceError, match=r"pushed out by newer ones.*result_bytes"):
            await first.result(timeout=20)
        assert await none.result(timeout=20) is None
        assert await last.result(timeout=20) == "x" * 40_000


@pytest.mark.trust(point=10)
async def test_a_number_that_json_does_not_have_is_refused_where_it_is_returned(platform: Platform) -> None:
    async with AsyncClient(platform.gateway_address) as client:
        # Given a function that returns infinity and NaN, when it has run, then it failed each time and says why
        for handle in await client.submit_many([Call("odd", sign=sign) for sign in (-1, 0, 1)]):
            with pytest.raises(tailrace.WorkloadFailed, match="NaN or infinity"):
                await handle.result(timeout=20)
