"""Tokens of an issuer that have ended: a clock that is set back revives none that was accepted before."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from tailrace.foundation.duties import Duties
from tailrace.gateway.oidc import IssuedTokens, OidcConfig
from tailrace.gateway.rules.tokens import KnownTokens
from tailrace.model.errors import InvalidRequest, Unavailable
from tailrace.testing.clock import ManualClock

NOW = 1_700_000_000.0


async def test_a_token_that_was_accepted_and_has_ended_stays_ended(tmp_path: Path) -> None:
    # Given a token that an issuer signed
    key = ECKey.generate_key("P-256", {"kid": "k"})
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    said = {"iss": "https://id", "aud": "tailrace", "sub": "ann", "exp": NOW + 60, "groups": ["ops"]}
    secret = jwt.encode({"alg": "ES256", "kid": "k"}, said, key, algorithms=["ES256"])
    config = OidcConfig(
        issuer="https://id", audience="tailrace", keys=str(tmp_path / "keys.json"), rights={"ops": ["read"]}
    )
    duties = Duties("test")
    tokens = IssuedTokens(KnownTokens(), config, ManualClock(), duties)
    tokens.start()
    try:
        async with asyncio.timeout(10):
            while True:
                try:
                    assert tokens.shown(secret, NOW).name
                    break
                except Unavailable:
                    await asyncio.sleep(0.01)
        # When it has ended by the clock, then it stays so
        for now in (NOW + 60, NOW, NOW - 60):
            with pytest.raises(InvalidRequest, match="has expired"):
                tokens.shown(secret, now)
    finally:
        await duties.end()
