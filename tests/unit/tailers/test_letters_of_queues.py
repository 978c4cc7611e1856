"""Dead letters of items of a queue."""

from __future__ import annotations

from collections import Counter

from tailrace.model.dead_letter import JOB_ITEM
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Extra, Flight, Kind
from tailrace.tailers.departures.dead_letters import letter_of_queued
from tailrace.tailers.hand_out import HandOut
from tailrace.tailers.pumps.queue_pump import Claim
from tailrace.tailers.rules.settlement import Action, Settlement

DEAD = Settlement(Action.DEAD, 0.0, 3, 0, 0, "bad")


def test_the_letter_of_a_jobs_item_says_so_and_no_other():
    # Given a claim of an item of a job, and of one with headers that is in none
    extras = {1: Extra(headers=(("color", "red"),))}
    flight = Flight(1, 7, [Kind("charge", 2)] * 2, ["a", "b"], [b"1", b"2"], [3, 3], extras=extras)
    out = HandOut(flight, [], Counter(), 1.0, Claim(9.0, jobs=frozenset([0])))
    ended = Ended(Outcome.FATAL, reason="bad")
    # When both die
    letters = [letter_of_queued(out, index, "queue", DEAD, ended, 2.0) for index in (0, 1)]
    # Then the first one's letter is known from the other's, so that it is redriven in its job or not at all
    assert [letter.headers for letter in letters] == [(JOB_ITEM,), (("color", "red"),)]
