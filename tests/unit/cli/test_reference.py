"""The generated reference says keys, options and defaults as one writes them."""

from __future__ import annotations

import pytest

from tailrace import reference


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


@pytest.mark.parametrize(
    "row",
    [
        "| `is` | `null` | a value, or a list of values |",
        "| `max_delay` | `30d` |  |",
        "| `max_bytes` | `1GiB` |  |",
        '| `rungs` | `["1s", "5s", "30s", "1m", "5m", "30m", "6h"]` |  |',
        "| `write_ahead` | `256MiB` |",
        '"unsent": "256MiB", "stalled": "20s"',
    ],
)
def test_keys_and_defaults_are_those_that_a_file_has(pages: dict[str, str], row: str) -> None:
    assert row in pages["reference/configuration.md"]


def test_what_no_file_names_is_not_there(pages: dict[str, str]) -> None:
    text = pages["reference/configuration.md"]
    assert "## `source: {kind: log, …}`" in text and "kind: due" not in text and "`is_`" not in text


@pytest.mark.parametrize("row", ["| `--lend / --keep` | `--lend` |", "| `--adaptive / --no-adaptive` |  |"])
def test_options_are_there_with_their_negatives(pages: dict[str, str], row: str) -> None:
    assert row in pages["reference/cli.md"]
