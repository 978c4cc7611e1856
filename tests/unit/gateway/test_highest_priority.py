"""The highest priority that may be asked for, by the quotas of a function and a tenant."""

from __future__ import annotations

import pytest

from tailrace.gateway.rules.highest_priority import HighestPriorities
from tailrace.model.limits import Quota, quota_from_dict, quota_to_dict
from tailrace.model.workload import Kind
from tailrace.scheduler.rules.charges import Charges
from tailrace.wire.gateway_messages import quota_from_wire, quota_to_wire

QUOTAS = [
    Quota("mail", highest="user_visible"),
    Quota(tenant="acme", highest="eventual"),
    Quota(per="tenant", highest="user_visible"),
    Quota("report", tenant="acme", highest="reporting"),
    Quota("report", per="tenant", highest="eventual"),
    Quota(tenant="bob", concurrency=3),
    Quota(tenant="vip", highest="interactive"),
]


@pytest.mark.parametrize(
    ("function", "tenant", "rank"),
    [
        ("mail", "acme", 2),
        ("mail", "cid", 1),
        ("mail", "vip", 1),
        ("other", "vip", 0),
        ("other", "", 1),
        ("report", "acme", 3),
        ("report", "bob", 2),
        ("other", "bob", 1),
    ],
)
def test_the_least_urgent_of_all_that_name_it_decides(function: str, tenant: str, rank: int) -> None:
    known = HighestPriorities()
    assert known.of(function, tenant) == 0
    known.replace(QUOTAS)
    assert known.of(function, tenant) == rank


def test_only_what_changes_counts_as_a_change_and_what_nobody_knows_is_left_out() -> None:
    known = HighestPriorities()
    known.replace(QUOTAS)
    known.replace([*reversed(QUOTAS), Quota("mail", collection="c", rate=1), Quota(tenant="x", highest="of-2031")])
    assert known.changes == 1
    known.replace([])
    assert (known.changes, known.of("mail", "acme")) == (2, 0)


def test_a_quota_says_it_wherever_it_travels_and_rests() -> None:
    for quota in QUOTAS:
        assert quota_from_wire(quota_to_wire(quota)) == quota
        assert quota_from_dict(quota_to_dict(quota)) == quota
        assert not quota.fault() and not quota.empty
    assert "highest" not in quota_to_dict(Quota("mail", 1))


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (Quota("mail", highest="urgent"), "highest is 'urgent': expected one of interactive"),
        (Quota("mail", highest="x" * 100_000), "expected one of"),
        (Quota("mail", collection="c", highest="eventual"), "of a function, a tenant"),
        (Quota(downstream="smtp", highest="eventual"), "of a function, a tenant"),
    ],
)
def test_what_is_no_level_or_of_nothing_that_has_one_is_refused(quota: Quota, words: str) -> None:
    assert words in quota.fault()
    assert len(quota.fault()) < 500


def test_a_quota_that_only_bounds_what_is_asked_for_changes_nothing_for_a_scheduler() -> None:
    charges = Charges()
    assert not charges.set([Quota(tenant="acme", highest="eventual"), Quota(per="tenant", highest="eventual")], 1, 0.0)
    assert not charges.anything
    assert charges.set([Quota(tenant="acme", highest="eventual", concurrency=3)], 2, 0.0)
    [limit] = charges.resolve(Kind("mail", 2, "", "acme"), 0.0)
    assert limit.concurrency == 3
