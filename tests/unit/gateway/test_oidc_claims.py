"""Claims of signed tokens: those that a token must have, and the rights that come of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.rules.oidc_claims import token_of
from tailrace.model.errors import InvalidRequest
from tailrace.model.rights import Right
from tailrace.model.token import Token

RIGHTS = {"ops": (Right("read"), Right("operate")), "shop": (Right("submit", "pay"), Right("read"))}
GOOD: dict[str, Any] = {
    "iss": "https://id",
    "aud": "tailrace",
    "sub": "ann",
    "exp": 200,
    "groups": ["ops", "shop", "x"],
}


def read(claims: dict[str, Any], now: float = 100.0) -> Token:
    return token_of(claims, issuer="https://id", audience="tailrace", claim="groups", rights=RIGHTS, now=now)


def test_rights_are_those_of_all_values_once_each() -> None:
    found = read(GOOD)
    assert (found.name, found.until) == ("ann", 200.0)
    assert found.rights == (Right("read"), Right("operate"), Right("submit", "pay"))
    assert read(GOOD | {"groups": "shop"}).rights == RIGHTS["shop"]
    assert read(GOOD | {"aud": ["other", "tailrace"], "nbf": 150}).name == "ann"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"iss": "https://evil"}, "issued by 'https://evil', not by https://id"),
        ({"iss": None}, "issued by None"),
        ({"aud": "other"}, "meant for 'other', not for 'tailrace'"),
        ({"aud": ["a"]}, "not for 'tailrace'"),
        ({"aud": {"tailrace": 1}}, "not for 'tailrace'"),
        ({"sub": ""}, "no sub"),
        ({"sub": 7}, "no sub"),
        ({"exp": None}, "no exp"),
        ({"exp": True}, "no exp"),
        ({"exp": float("inf")}, "no exp"),
        ({"exp": 10**400}, "no exp"),
        ({"exp": 100}, "has expired"),
        ({"nbf": 161}, "not valid yet"),
        ({"groups": ["other"]}, r"gives no rights here: its groups is \['other'\]; `oidc` in"),
        ({"groups": {"ops": 1}}, "gives no rights here"),
        ({"groups": None}, "gives no rights here"),
        ({"groups": ["x" * 100_000, "\ud800"]}, "gives no rights here"),
    ],
)
def test_any_other_token_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as refused:
        read(GOOD | wrong)
    assert len(str(refused.value)) < 600
    str(refused.value).encode()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "nbf"]), anything))
def test_whatever_claims_say_the_answer_is_a_token_or_a_refusal(wrong: dict[str, Any]) -> None:
    try:
        found = read(GOOD | wrong)
    except InvalidRequest:
        return
    assert found.rights and found.until > 100
