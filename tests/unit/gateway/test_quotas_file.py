"""`quotas.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.foundation.config import load
from tailrace.gateway.quota_plan import numbers, removals, warnings, with_changes
from tailrace.gateway.quotas import QuotasConfig
from tailrace.model.adaptive import Adaptive
from tailrace.model.errors import ConfigError
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota, quotas_from_text, quotas_to_text
from tailrace.model.unit_rate import UnitRate
from tailrace.wire.gateway_messages import quota_from_wire, quota_to_wire


def test_a_file_gives_the_limits_by_function(tmp_path: Path) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(
        "functions:\n  send_email: {concurrency: 50, rate: 100, burst: 200, weight: 2}\n  index: {rate: 0.5}\n"
    )
    assert load(path, QuotasConfig).all() == [Quota("index", rate=0.5), Quota("send_email", 50, 100.0, 200.0, 2.0)]


def test_how_a_downstream_adapts_is_read_kept_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(
        "quotas:\n  - {downstream: stripe, rate: 90, adaptive: {floor: 5, ceiling: 400, slow_start: 1s}}\n"
        "  - {downstream: smtp, adaptive: {on: false}}\n"
    )
    stripe, smtp = load(path, QuotasConfig).all()
    assert stripe == Quota(downstream="stripe", rate=90.0, adaptive=Adaptive(floor=5.0, ceiling=400.0, slow_start=1.0))
    assert smtp == Quota(downstream="smtp", adaptive=Adaptive(on=False))
    assert quotas_from_text(quotas_to_text([stripe, smtp])) == [smtp, stripe]
    assert [quota_from_wire(quota_to_wire(each)) for each in (stripe, smtp)] == [stripe, smtp]
    assert numbers(stripe) == "rate 90, adaptive (floor 5, ceiling 400, slow_start 1)"
    assert numbers(smtp) == "not adaptive"


def test_rates_in_units_are_read_kept_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(
        "functions: {index: {units: {rows: 50}}}\n"
        "quotas:\n  - downstream: openai\n    rate: 600/min\n"
        "    units: {tokens: {rate: 90000/min, burst: 9000, estimate: 800}}\n"
        "  - {per: tenant, units: {tokens: 86400/day, bytes: 1_000_000/s}}\n"
    )
    index, openai, tenants = load(path, QuotasConfig).all()
    assert index == Quota("index", units=(UnitRate("rows", 50.0),))
    assert openai == Quota(downstream="openai", rate=10.0, units=(UnitRate("tokens", 1500.0, 9000.0, 800.0),))
    assert tenants == Quota(per="tenant", units=(UnitRate("bytes", 1e6), UnitRate("tokens", 1.0)))
    for each in (index, openai, tenants):
        assert quotas_from_text(quotas_to_text([each])) == [each]
        assert quota_from_wire(quota_to_wire(each)) == each
        assert not each.empty
    assert numbers(openai) == "rate 10, tokens 1500/s (burst 9000, estimate 800)"


@pytest.mark.parametrize(
    "quota",
    [
        Quota(downstream="openai", rate=8.0, units=(UnitRate("tokens", 1500.0),)),
        Quota(downstream="smtp", adaptive=Adaptive(on=False)),
        Quota("f", per="tenant", concurrency=3, max_values=100, reserve=60.0, lend=False),
        Quota("f", collection="c", weight=2.0),
        Quota(tenant="t", highest="eventual"),
        Quota("f", opportunistic=True, downstreams=("smtp",)),
    ],
)
def test_what_a_file_says_no_more_is_gone_whatever_it_said(quota: Quota) -> None:
    # Given a quota of the file beside one that an operator set
    other = Quota("other", concurrency=1)
    # When the file says it no more, Then it is in force no more, and the other one is
    assert with_changes([quota, other], removals([quota], [])) == [other]
    # And one that the file still says is left alone
    assert removals([quota], [quota]) == []


def test_a_plan_says_which_rate_in_a_unit_is_never_reached() -> None:
    whole = Quota(downstream="d", units=(UnitRate("tokens", 10.0), UnitRate("rows", 5.0)))
    one = Quota(downstream="d", tenant="t", units=(UnitRate("tokens", 20.0), UnitRate("bytes", 9.0)))
    [found] = warnings([whole, one], [FunctionSpec("f", downstreams=("d",))])
    assert "rate of tokens 20 is above that of downstream d, 10" in found


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("quotas: [{downstream: d, units: {tokens: 0}}]", "no rate"),
        ("quotas: [{downstream: d, units: {tokens: -5}}]", "not a rate"),
        ("quotas: [{downstream: d, units: {tokens: 5/fortnight}}]", 'text like "500/min"'),
        ("quotas: [{downstream: d, units: {tokens: .inf}}]", "not a rate"),
        ("quotas: [{downstream: d, units: {tokens: true}}]", "not a rate"),
        ("quotas: [{downstream: d, units: {tokens: 1.0e+300}}]", "1000000000000"),
        ("quotas: [{downstream: d, units: {tokens: {rate: 5, bust: 3}}}]", "did you mean 'burst'"),
        ("quotas: [{downstream: d, units: {tokens: {rate: 5, burst: -3}}}]", "burst"),
        ("quotas: [{downstream: d, units: {tokens: {burst: 3}}}]", "rate"),
        ("quotas: [{downstream: d, units: {'a b': 5}}]", "not a name"),
        ("quotas: [{downstream: d, units: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}}]", "at most 8"),
        ("functions: {f: {units: {tokens: {rate: .nan}}}}", "not a rate"),
        ("quotas: [{downstream: d, adaptive: {flor: 1}}]", "did you mean 'floor'"),
        ("quotas: [{downstream: d, adaptive: {decrease: 1}}]", "adaptive.decrease is 1: expected 0.1 to 0.99"),
        ("quotas: [{downstream: d, adaptive: {floor: .nan}}]", "floor"),
        ("quotas: [{downstream: d, adaptive: {floor: 5, ceiling: 2}}]", "below its floor"),
        ("quotas: [{function: f, adaptive: {}}]", "whole downstream"),
        ("quotas: [{downstream: d, per: tenant, adaptive: {}}]", "whole downstream"),
        ("functions: {a: {concurency: 1}}", "concurrency"),
        ("functions: {a: {rate: -1}}", "rate"),
        ("functions: {a: {burst: 5}}", "burst"),
        ("functions: {a: {rate: .inf}}", "rate"),
        ("quotas: [{tennant: acme, concurrency: 1}]", "did you mean 'tenant'"),
        ("quotas: [{tenant: acme}]", "has no limit"),
        ("quotas: [{concurrency: 1}]", "nobody pays it"),
        ("quotas: [{per: function, concurrency: 1}]", "expected tenant"),
        ("quotas: [{per: tenant, tenant: acme, concurrency: 1}]", "give one of them"),
        ("quotas: [{collection: c, concurrency: 1}]", "without `function`"),
        ("quotas: [{downstream: d, weight: 2}]", "take no turns"),
        ("quotas: [{tenant: acme, max_values: 5, rate: 1}]", "max_values"),
        ("functions: {a: {rate: 1}}\nquotas: [{function: a, rate: 2}]", "two entries"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=word):
        load(path, QuotasConfig)
