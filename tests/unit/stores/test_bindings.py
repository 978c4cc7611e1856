"""The rule of bindings: who may use a log under the checkpoints of a state on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.stores.bindings import LEASE, BindingVerdict, LogBinding, binding_of, place_of, verdict
from tailrace.stores.data_dir import DataDir

ME = LogBinding("a1 host:/data", run="mine", place="here")
HELD = LogBinding("a1 old:/elsewhere", run="other", place="there", beat=3, marks=("m2",))


@pytest.mark.parametrize(
    ("held", "mark", "unchanged", "expected"),
    [
        (LogBinding("b2 host:/data"), "", 99.0, BindingVerdict.ANOTHER_NODE),
        (LogBinding("a1 host:/data"), "", 0.0, BindingVerdict.FREE),  # of a former version
        (HELD, "m2", 0.0, BindingVerdict.HELD),
        (HELD, "m2", LEASE - 0.1, BindingVerdict.HELD),
        (HELD, "m2", LEASE, BindingVerdict.FREE),
        (HELD, "m1", LEASE, BindingVerdict.LEFT_BEHIND),
        (HELD, "", LEASE, BindingVerdict.LEFT_BEHIND),  # the file was made anew
        (LogBinding("a1 x", run="other", place="here", marks=("m2",)), "m2", 0.0, BindingVerdict.FREE),  # it died here
        (LogBinding("a1 x", run="mine", place="there", marks=("m2",)), "m2", 0.0, BindingVerdict.FREE),
        (LogBinding("a1 x", marks=("m1", "m2")), "m1", 0.0, BindingVerdict.FREE),  # given back
        (LogBinding("a1 x", marks=("m1", "m2")), "m0", 0.0, BindingVerdict.LEFT_BEHIND),
    ],
)
def test_a_binding_goes_to_one_run_with_the_log_that_went_on_last(
    held: LogBinding, mark: str, unchanged: float, expected: BindingVerdict
) -> None:
    assert verdict(held, ME, mark, unchanged) is expected


def test_a_text_tells_all_of_a_binding_and_one_of_a_former_version_the_node() -> None:
    assert binding_of(HELD.text()) == HELD
    assert binding_of(HELD.renewed().text()).beat == 4
    assert binding_of("a1 host:/my data") == LogBinding("a1 host:/my data")


def test_two_folders_are_two_places_and_a_restart_is_one(tmp_path: Path) -> None:
    places = []
    for name in ("one", "two", "one"):
        with DataDir(tmp_path / name):
            places.append(place_of(tmp_path / name))
    assert places[0] == places[2] != places[1]
