"""Headers as rows of the queue on PostgreSQL have them."""

from __future__ import annotations

import pytest

from tailrace.stores.queue.postgres.rows import headers_of


@pytest.mark.parametrize("mark", ["", "[]", "[3]", "[12]"])
def test_the_mark_of_an_item_of_a_job_is_no_header(mark):
    # Given what stands at an item without headers, or at one of a job, whose failures are bounded or not
    # Then nobody who looks takes it for headers
    assert headers_of(mark) == ()


def test_headers_are_pairs():
    assert headers_of('[["a","1"],["b",""]]') == (("a", "1"), ("b", ""))
