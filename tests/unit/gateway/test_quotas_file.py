"""`quotas.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.foundation.config import load
from tailrace.gateway.quotas import QuotasConfig
from tailrace.model.errors import ConfigError
from tailrace.model.limits import Quota


def test_a_file_gives_the_limits_by_function(tmp_path: Path) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(
        "functions:\n  send_email: {concurrency: 50, rate: 100, burst: 200, weight: 2}\n  index: {rate: 0.5}\n"
    )
    assert load(path, QuotasConfig).all() == [Quota("index", rate=0.5), Quota("send_email", 50, 100.0, 200.0, 2.0)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("functions: {a: {concurency: 1}}", "concurrency"),
        ("functions: {a: {rate: -1}}", "rate"),
        ("functions: {a: {burst: 5}}", "burst"),
        ("functions: {a: {rate: .inf}}", "rate"),
        ("quotas: [{tennant: acme, concurrency: 1}]", "did you mean 'tenant'"),
        ("quotas: [{tenant: acme}]", "says nothing"),
        ("quotas: [{concurrency: 1}]", "names nothing"),
        ("quotas: [{per: function, concurrency: 1}]", "expected tenant"),
        ("quotas: [{per: tenant, tenant: acme, concurrency: 1}]", "give one of them"),
        ("quotas: [{collection: c, concurrency: 1}]", "no function"),
        ("quotas: [{downstream: d, weight: 2}]", "take no turns"),
        ("quotas: [{tenant: acme, max_values: 5, rate: 1}]", "max_values"),
        ("functions: {a: {rate: 1}}\nquotas: [{function: a, rate: 2}]", "twice"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=word):
        load(path, QuotasConfig)
