"""The scenarios of job trees run whole, small."""

import tempfile
from pathlib import Path

import pytest

from tailrace.bench import beside_tree, trees
from tailrace.model.errors import TailraceError


def quiet(what: str, share: float) -> None:
    assert what and share >= 0


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.long(minutes=0.15))])
async def test_claims_of_large_trees_and_beside_many_are_measured_in_turns(
    engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a tenth of a tenth of the open trees, of items enough for one turn
    request.getfixturevalue("postgres_server")
    monkeypatch.setattr(trees, "OPEN", 300)
    monkeypatch.setattr(trees, "ROUNDS", 3)

    # When they are claimed from, settled and filled up again
    with tempfile.TemporaryDirectory() as folder:  # PostgreSQL's user may not pass through those of pytest
        figures = await trees.trees(Path(folder), 3000, quiet, engine)

    # Then each pair has its ratio
    assert figures["items"] == 3000 and all(value > 0 for value in figures.values())
    assert figures["items_ratio"] == pytest.approx(figures["many_claim_us"] / figures["few_claim_us"], abs=0.002)
    assert figures["open_ratio"] == pytest.approx(figures["open_claim_us"] / figures["one_claim_us"], abs=0.002)


@pytest.mark.long(minutes=0.2)
async def test_a_lone_item_is_measured_beside_a_tree_that_waits_and_one_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given one turn of a second each
    monkeypatch.setattr(beside_tree, "ROUNDS", 1)

    # When a tree is filled, held and let go
    figures = await beside_tree.beside_tree(tmp_path, 40_000, quiet, "sqlite")

    # Then it ran meanwhile, and the waits of all three are told
    assert figures["tree_items_per_s"] > 0
    assert figures["ratio"] == pytest.approx(figures["beside_p99_ms"] / figures["alone_p99_ms"])


@pytest.mark.timeout(120)
async def test_a_tree_that_is_over_too_soon_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a tree of fewer items than two seconds take, when it is measured beside, then more are asked for
    monkeypatch.setattr(beside_tree, "ROUNDS", 1)
    with pytest.raises(TailraceError, match="ask for more --items"):
        await beside_tree.beside_tree(tmp_path, 1500, quiet, "sqlite")
