"""The interpreter of a long-lived process."""

import gc

import pytest

from tailrace.assembly.interpreter import loading


def test_what_is_loaded_is_never_looked_through_for_garbage() -> None:
    before = gc.get_freeze_count()
    with loading():
        assert not gc.isenabled()
        made = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(made)


def test_garbage_is_collected_again_after_a_start_that_failed() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError("no such module")
    assert gc.isenabled()
