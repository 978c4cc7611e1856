"""The words of `tailrace explain` on a workload that the asked scheduler does not have."""

from __future__ import annotations

import pytest

from tailrace.model.claim import State
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.job import TreeStatus
from tailrace.model.limits import Snapshot
from tailrace.model.status import SPOOLED, WorkloadStatus
from tailrace.model.workload import Kind
from tailrace.scheduler.explaining import AheadOfKey, resting

CLOGGED = {"charge": "charge is clogged: of its last first attempts 90 % failed (no database)"}
LIMITS = Snapshot(functions=[FunctionSpec("charge"), FunctionSpec("mail")])


NOW = 1000.0
LEASED = (State.ENQUEUED, State.PROCESSING)
GATED = Snapshot(gates=[Gate("charge", "", "pause")], functions=LIMITS.functions)


def status(function: str, state: str = "new", **facts: float) -> WorkloadStatus:
    return WorkloadStatus("id", state, Kind(function), **facts)


def test_of_a_clogged_function_it_says_so_unless_something_nearer_holds_it() -> None:
    assert resting(status("charge"), LIMITS, 10.0, CLOGGED) == ("outage", CLOGGED["charge"])
    assert resting(status("mail"), LIMITS, 10.0, CLOGGED)[0] == "waiting"
    assert resting(status("charge", due_at=20.0), LIMITS, 10.0, CLOGGED)[0] == "not_due"
    gated = Snapshot(gates=[Gate("charge", "", "pause")], functions=LIMITS.functions)
    assert resting(status("charge"), gated, 10.0, CLOGGED)[0] == "pause"


@pytest.mark.parametrize(
    ("state", "due", "reason"),
    [
        *((SPOOLED, due, "spooled") for due in (NOW - 1, NOW + 9)),
        *((state.label, NOW - 1, "waiting") for state in (State.NEW, State.RETRIABLE_FAILURE)),
        *((state.label, NOW + 9, "not_due") for state in (State.NEW, State.RETRIABLE_FAILURE)),
        *((state.label, due, "handed_out") for state in LEASED for due in (NOW - 1, NOW + 9)),
        *((state.label, 0.0, "ended") for state in State if state >= State.SUCCESS),
    ],
)
def test_each_state_has_its_own_reason(state: str, due: float, reason: str) -> None:
    assert resting(status("mail", state, due_at=due), LIMITS, NOW, {})[0] == reason


@pytest.mark.parametrize("state", LEASED)
@pytest.mark.parametrize("limits", [LIMITS, GATED, Snapshot()])
def test_what_a_scheduler_lost_does_not_rest_and_is_told_when_it_is_handed_out_again(
    state: State, limits: Snapshot
) -> None:
    # Given an item that its tailer holds, whose lease the store knows, and a scheduler that was started again, when it
    # is asked, whatever holds back what does rest
    reason, detail = resting(status("charge", state.label, due_at=NOW + 30), limits, NOW, CLOGGED)
    # Then it is not said to wait, nor to be due later: it is out, and comes back when its lease is over
    assert reason == "handed_out"
    assert "rests" not in detail
    assert "is due" not in detail
    assert "Its lease ends in 30" in detail
    assert "handed out again" in detail
    over = resting(status("charge", state.label, due_at=NOW - 1), limits, NOW, CLOGGED)[1]
    assert "Its lease is over" in over


@pytest.mark.parametrize(
    ("state", "reason", "detail"),
    [
        ("paused", "job_paused", "tailrace job resume import-1"),
        ("ending", "job_ends", "enough"),
        ("running", "waiting", "credit"),
    ],
)
def test_an_item_of_a_paused_job_says_so(state: str, reason: str, detail: str) -> None:
    # Given an item that is due, of a job in this state
    tree = TreeStatus("import-1", "import", "", state, "continue", "", 0.0, why="enough")
    # Then it says what keeps it and what to do
    found = resting(status("mail", due_at=NOW - 1), LIMITS, NOW, {}, tree)
    assert found[0] == reason
    assert detail in found[1]
    # But one that is out says that first
    assert resting(status("mail", State.ENQUEUED.label, due_at=NOW - 1), LIMITS, NOW, {}, tree)[0] == "handed_out"


@pytest.mark.parametrize(
    ("state", "detail"),
    [
        ("paused", ": an item of the job 'import-1', which is paused: tailrace job resume import-1"),
        ("ending", ": an item of the job 'import-1', which ends, and is cancelled"),
        ("running", ""),
        ("", ""),
    ],
)
def test_a_workload_behind_another_one_of_its_key_names_that(state: str, detail: str) -> None:
    # Given one that is due, behind another one that is an item of a job in this state, or of none
    tree = TreeStatus("import-1", "import", "", state, "continue", "", 0.0) if state else None
    ahead = AheadOfKey("00ab", "account-7", tree)
    # Then it names that one, and what keeps it
    found = resting(status("mail", due_at=NOW - 1), LIMITS, NOW, {}, None, ahead)
    assert found == ("key", f"it waits behind 00ab, which has its key 'account-7' and goes first{detail}")
