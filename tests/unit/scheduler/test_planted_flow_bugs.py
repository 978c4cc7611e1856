"""Planted mistakes in the rules of flow control: each is found by a history or a story that passes without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scenes.planted_mistake import Mistake, examples, history, plant
from unit.scheduler import test_adaptive_rule as adaptive_rule
from unit.scheduler import test_budget_of_retries as retry_stories
from unit.scheduler import test_flow_limit_histories as limit_histories
from unit.scheduler import test_flow_limits as limits_stories
from unit.scheduler import test_gate_rule as gate_rule_stories
from unit.scheduler import test_gates as gate_stories
from unit.scheduler import test_reservations as reserving_stories
from unit.scheduler import test_reserve as reserve_stories
from unit.scheduler import test_shares as shares_stories
from unit.scheduler import test_unit_limit as bucket_stories
from unit.scheduler import test_unit_rate_histories as unit_histories
from unit.scheduler import test_unit_rates as unit_stories
from unit.scheduler.test_scheduler_core import core

from tailrace.scheduler import closings, dispatch, intake, limits, returns, shares, sleep
from tailrace.scheduler.rules import (
    adaptive,
    charges,
    closing,
    cost,
    estimate,
    gate,
    limit,
    reserve,
    retry_budget,
    share,
    turns,
    unit_limit,
)


def reserving(story: Callable[[Any], None]) -> Callable[[], None]:
    """A story of a core that may be given as much as one likes."""
    return lambda: story(core(calls=65_536, lane_items=100_000))


composed = history(limit_histories.Composed)
in_turns = reserving_stories.test_flows_that_wait_for_their_own_full_limit_keep_of_a_shared_one_what_they_need


MISTAKES = {
    "what starts is not counted at its limits": Mistake(
        dispatch.Dispatch, "_start", "limit.running += started", "limit.running += 0", composed
    ),
    "what starts takes no token": Mistake(
        dispatch.Dispatch, "_start", "limit.tokens -= started", "limit.tokens -= 0", composed
    ),
    "a batch may pass a concurrency": Mistake(limit, "take_all", "limit.running > limit.concurrency or ", "", composed),
    "a batch may pass a rate": Mistake(
        limit,
        "take_all",
        "limit.tokens < 0 or ",
        "",
        limits_stories.test_a_batch_starts_no_more_items_than_its_rate_has_tokens,
    ),
    "who slept on a limit that is gone sleeps there": Mistake(
        limits.Limits,
        "_nobody_sleeps",
        "flow.asleep.sleepers.clear()",
        "pass",
        unit_stories.test_a_run_that_a_limit_was_taken_away_from_wakes_nobody_there,
    ),
    "a bucket has no bottom": Mistake(
        limit.Limit,
        "refill",
        "min(self.burst, self.tokens + (now - self.at) * self.rate)",
        "self.tokens + (now - self.at) * self.rate",
        limits_stories.test_a_bucket_gathers_no_more_than_its_burst_however_long_nothing_starts,
    ),
    "what ended stays taken": Mistake(
        limits.Limits,
        "ended",
        "limit.running -= count",
        "limit.running -= 0",
        limits_stories.test_each_end_makes_room_for_one_that_waits,
    ),
    "what ended is taken off twice": Mistake(
        limits.Limits,
        "ended",
        "limit.running -= count",
        "limit.running -= min(limit.running, 2 * count)",
        limits_stories.test_each_end_makes_room_for_one_that_waits,
    ),
    "room wakes nobody": Mistake(
        limits.Limits,
        "ended",
        "roomy[limit] = None",
        "pass",
        limits_stories.test_each_end_makes_room_for_one_that_waits,
    ),
    "what is out is not counted anew": Mistake(limits.Limits, "_anew", "limit.found(count)", "pass", composed),
    "a tenant pays that of each tenant beside its own": Mistake(
        charges.Charges,
        "_of_tenant_in",
        "own, every = self._quotas.get(one) if tenant else None, self._quotas.get(each)",
        "own, every = None, self._quotas.get(each)",
        composed,
    ),
    "a collection pays nothing of its own": Mistake(
        charges.Charges, "paid", "if known.collections and kind.collection:", "if False:", composed
    ),
    "tenants are not told apart": Mistake(
        charges.Charges,
        "kin",
        "kind.tenant if tenants",
        "kind.tenant if False",
        composed,
    ),
    "nobody reserves its limits": Mistake(
        sleep.Sleep,
        "_look",
        "now - flow.since < PATIENCE",
        "now - flow.since < 1e9",
        limits_stories.test_a_flow_that_needs_two_limits_is_not_starved_by_those_that_need_one,
    ),
    "a reservation is never laid down": Mistake(
        sleep.Sleep,
        "_release",
        "limit.reserver = None",
        "pass",
        limits_stories.test_a_flow_that_needs_two_limits_is_not_starved_by_those_that_need_one,
    ),
    "a reservation keeps all the room that there is": Mistake(
        limit.Limit, "beside", "0 if self.units else room - 1", "0", lambda: in_turns(2, 20, 0.9)
    ),
    "a reservation follows the other": Mistake(
        sleep.Sleep, "_look", "limit.unreserved_until = now + KEEPS", "pass", lambda: in_turns(3, 4, 0.4)
    ),
    "weights weigh nothing": Mistake(
        turns.Turns,
        "serve",
        "node.v += cost / node.weight",
        "node.v += cost",
        lambda: limits_stories.test_shares_follow_the_weights_by_the_time_that_runs_take((1.0, 3.0)),
    ),
    "turns count items": Mistake(
        cost.Metered,
        "settle",
        "self.mean = mean + PACE * (max(LEAST, busy / (self.ended - self.counted)) - mean)",
        "self.mean = FIRST",
        lambda: limits_stories.test_shares_follow_the_weights_by_the_time_that_runs_take((1.0, 1.0)),
    ),
    "a flow is charged what such runs took once": Mistake(
        shares.Shares,
        "_competing",
        "settle(flow, now)",
        "pass",
        shares_stories.test_runs_of_another_length_count_by_the_time_that_they_take_also_while_they_always_wait,
    ),
    "turns have no choice": Mistake(
        share,
        "choice",
        "min(bound, math.ceil(CREDIT * worths))",
        "0",
        shares_stories.test_tenants_that_all_have_much_waiting_start_by_their_weights,
    ),
    "a flow that has enough here is never closed": Mistake(
        share,
        "part",
        "max(2, int(",
        "100_000 + max(2, int(",
        shares_stories.test_a_flood_that_waits_alone_leaves_credit_for_another_and_no_slot_idle,
    ),
    "a closed flow waits for a word": Mistake(
        closing,
        "opens",
        "now - flow.closed >= LOOK_AGAIN and",
        "False and",
        limits_stories.test_a_closed_flow_opens_by_itself,
    ),
    "a blocked flow is closed at every rank": Mistake(
        closings.Closings,
        "_mark",
        "priority=kind.priority, **named",
        "priority=0, **named",
        limits_stories.test_a_blocked_flow_goes_back_but_for_what_may_start_soon_and_is_closed_exactly,
    ),
    "drop goes before pause": Mistake(
        gate,
        "decisive",
        "gate.action != PAUSE",
        "gate.action == PAUSE",
        gate_rule_stories.test_between_gates_of_which_neither_is_more_specific_pause_goes_before_drop,
    ),
    "a source's gate closes every source": Mistake(
        intake.Intake,
        "shut",
        "gates.of(item[KIND], item[SESSION].name) is not None",
        "bool(gates.sources)",
        gate_stories.test_a_source_that_is_paused_gets_back_what_waits_and_what_it_pushes_and_no_other_does,
    ),
    "a reserve is never used up": Mistake(
        reserve.Reserve,
        "take",
        "self.level - cost",
        "self.level",
        reserving(reserve_stories.test_whoever_is_below_its_reserve_goes_before_all_others),
    ),
    "a reserve goes before nobody": Mistake(
        turns.Turns,
        "serve_reserved",
        "entitled(flow.reserves_of, now)]",
        "False]",
        reserving(reserve_stories.test_whoever_is_below_its_reserve_goes_before_all_others),
    ),
    "every reserve is lent": Mistake(
        limits.Limits,
        "kept",
        "if not reserve.lend",
        "if False",
        reserving(reserve_stories.test_a_reserve_that_is_not_lent_stays_empty_for_whoever_cannot_wait),
    ),
    "what is opportunistic competes": Mistake(
        dispatch.Dispatch,
        "_serve",
        "(able.idle if flow.function.opportunistic else turns)",
        "turns",
        reserving(reserve_stories.test_what_is_opportunistic_runs_only_in_what_others_leave),
    ),
    "who has no slot keeps its share of a limit": Mistake(
        dispatch.Dispatch,
        "_give_back",
        "self._sleep.tried(flow)",
        "pass",
        reserving(reserve_stories.test_who_waits_for_slots_that_are_kept_keeps_no_share_of_a_limit),
    ),
    "a downstream shrinks with each throttle": Mistake(
        adaptive.AdaptiveLimit,
        "told",
        "started_at >= self.epoch_at",
        "True",
        examples(
            adaptive_rule.test_whatever_is_said_it_stays_within_its_bounds_and_shrinks_once_an_epoch,
            adaptive_rule.SAID,
        ),
    ),
    "what is not used grows": Mistake(
        adaptive.AdaptiveLimit,
        "_grow",
        "self._used < USED",
        "False",
        adaptive_rule.test_what_is_not_used_does_not_grow,
    ),
    "an estimate that was too low is not put right": Mistake(
        unit_limit.UnitLimit,
        "put_right",
        "self._fall(used - estimate, now)",
        "pass",
        unit_stories.test_what_a_run_used_puts_the_limit_right_both_ways,
    ),
    "an estimate that was too high is not put right": Mistake(
        unit_limit.UnitLimit,
        "put_right",
        "self._give_back(estimate - used, since, now)",
        "pass",
        unit_stories.test_what_a_run_used_puts_the_limit_right_both_ways,
    ),
    "what was not used comes back beyond the burst": Mistake(
        unit_limit.UnitLimit,
        "_give_back",
        "min(burst, held + max(0.0, min(amount, burst - highest)))",
        "held + amount",
        bucket_stories.test_what_comes_back_to_a_full_bucket_runs_over,
    ),
    "what was not used comes back although it would have run over": Mistake(
        unit_limit.UnitLimit,
        "_give_back",
        "min(amount, burst - highest)",
        "amount",
        unit_stories.test_what_is_given_back_never_makes_more_than_what_the_bucket_could_have_kept,
    ),
    "what came back leaves the heights of the bucket as they were": Mistake(
        unit_limit.UnitLimit,
        "_give_back",
        "min(burst, height + amount)",
        "height",
        bucket_stories.test_what_comes_back_of_one_run_counts_where_another_one_comes_back,
    ),
    "how high the bucket was is forgotten": Mistake(
        unit_limit.UnitLimit,
        "_note",
        "heights.append((self._falls, height))",
        "pass",
        unit_stories.test_what_is_given_back_never_makes_more_than_what_the_bucket_could_have_kept,
    ),
    "units of lost runs are given back": Mistake(
        returns.Returns,
        "release",
        "if limits.measuring and not sent:",
        "if limits.measuring:",
        unit_stories.test_whoever_said_nothing_or_was_lost_keeps_its_estimate_and_whoever_never_ran_does_not,
    ),
    "a run that used more pays only once it is asked for": Mistake(
        limits.Limits,
        "used",
        "really, since)",
        "min(amount, really), since)",
        unit_stories.test_what_a_run_used_puts_the_limit_right_both_ways,
    ),
    "an item starts with less than it is estimated to use": Mistake(
        unit_limit.UnitLimit, "enough", "held >= min(amount, self.burst)", "held >= 0", history(unit_histories.Measured)
    ),
    "a batch pays for its first item": Mistake(
        estimate, "fitting", "held[index] -= amount", "held[index] -= 0", history(unit_histories.Measured)
    ),
    "small items overtake a large one": Mistake(
        dispatch.Dispatch,
        "_fit",
        "if limit.waiting:",
        "if False:",
        unit_stories.test_a_large_item_is_not_overtaken_for_ever_by_small_ones,
    ),
    "nobody learns what runs use": Mistake(
        limits.Limits,
        "used",
        "learn(item[FLOW].function.averages, limit, really)",
        "pass",
        unit_stories.test_an_estimate_is_what_the_item_says_else_the_average_else_what_is_declared,
    ),
    "a debt has no end": Mistake(
        unit_limit.UnitLimit,
        "_fall",
        "max(self.tokens - amount, -max(self.burst, LONGEST_DEBT * self.rate))",
        "self.tokens - amount",
        unit_stories.test_one_wrong_number_shuts_nobody_out_for_longer_than_an_hour,
    ),
    "who has enough is woken by nobody": Mistake(
        sleep.Sleep,
        "_wake_measured",
        "woke |= self._rouse(flow, turns)",
        "pass",
        unit_stories.test_items_start_by_what_they_are_estimated_to_use,
    ),
    "retries have no budget": Mistake(
        retry_budget.RetryBudget,
        "look",
        "self.part * (total - self._seen[0][1]) / WINDOW",
        "1e9",
        retry_stories.test_retries_are_a_part_of_first_attempts_and_wait_beyond_it,
    ),
}


@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_a_planted_mistake_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given the rule with a mistake in it
    plant(MISTAKES[name], (dispatch, intake, limits, sleep, closings, shares), monkeypatch)
    # When it is tried, Then somebody notices
    with pytest.raises(Exception) as found:
        MISTAKES[name].found_by()
    assert not isinstance(found.value, TypeError | NameError | AttributeError), "the mistake itself is broken"
