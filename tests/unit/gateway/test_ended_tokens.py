"""Tokens that have ended: a clock that is set back revives none."""

from __future__ import annotations

import pytest

from tailrace.gateway.rules.tokens import KnownTokens
from tailrace.model.errors import InvalidRequest
from tailrace.model.token import Token, hash_of

TOKEN = Token("ci", hash_of("secret"), (), 1000.0, 1.0, "ann")


def known() -> KnownTokens:
    tokens = KnownTokens()
    tokens.replace([TOKEN, Token("other", hash_of("another"), (), 5000.0, 1.0, "ann")])
    return tokens


def test_a_token_that_was_shown_too_late_stays_ended_though_the_clock_is_set_back() -> None:
    tokens = known()
    assert tokens.shown("secret", 999.0) == TOKEN
    for now in (1000.0, 999.0, 0.0):
        with pytest.raises(InvalidRequest, match="the token ci has expired"):
            tokens.shown("secret", now)
    assert "expired" in tokens.ended(TOKEN, 0.0)


def test_a_token_that_nobody_showed_ends_as_well_and_others_go_on() -> None:
    tokens = known()
    assert tokens.over(2000.0) == [TOKEN]
    assert tokens.over(0.0) == [TOKEN]
    assert tokens.shown("another", 2000.0).name == "other"


def test_a_token_that_was_made_anew_is_another_one() -> None:
    tokens = known()
    assert tokens.over(2000.0) == [TOKEN]
    anew = Token("ci", hash_of("newer"), (), 1500.0, 900.0, "ann")
    tokens.replace([anew])
    assert tokens.shown("newer", 1000.0) == anew
