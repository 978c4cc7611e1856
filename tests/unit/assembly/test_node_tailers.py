"""The tailers of a node: all of its queue is read, and nothing of it twice."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.assembly.node import with_the_queue
from tailrace.tailers.config import TailerConfig


def tailer(name: str, **source: Any) -> TailerConfig:
    return TailerConfig.model_validate({"name": name, "source": {"kind": "queue", **source}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], [{"kind": "queue", "without": []}]),
        (
            [tailer("a", functions=["f", "g"]), tailer("b", functions=["e"])],
            [{"kind": "queue", "without": ["e", "f", "g"]}],
        ),
        ([tailer("a", functions=["f"]), tailer("all", without=["f"])], []),
        ([tailer("all")], []),
    ],
)
def test_a_node_has_a_tailer_for_what_none_of_its_files_reads_of_the_queue(
    given: list[TailerConfig], expected: list[dict[str, Any]]
) -> None:
    found = with_the_queue(given)
    assert [each.source for each in found if each not in given] == expected
    assert all(each in found for each in given)
