"""Listing very many keys takes no more memory than listing few."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.bench.objects import listing

#: Bytes that the caches of SQLite may take, which are bounded.
CACHES = 50.0


@pytest.mark.long(minutes=1.2)
async def test_a_million_keys_are_listed_with_flat_memory(tmp_path: Path) -> None:
    figures = await listing(tmp_path, 1_000_000, lambda what, share: None)
    assert figures["list_growth_mb"] < CACHES, figures


async def test_ten_thousand_keys_are_all_found(tmp_path: Path) -> None:
    figures = await listing(tmp_path, 10_000, lambda what, share: None)
    assert figures["keys"] == 10_000
