"""Long tests (`make test-long`) take no longer than somebody would wait for."""

import pytest
from long_tests import BOUND, TOGETHER


def test_all_long_tests_together_take_a_bounded_time(request: pytest.FixtureRequest) -> None:
    # In a run of all tests; a narrower one knows only its own.
    together = request.config.stash[TOGETHER]
    assert together <= BOUND, f"the long tests say {together:.0f} min together: make one shorter, or say what it takes"
