"""Keys of an issuer, and where they may come from: in plain text from this machine only, since who is between could
tell others."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tailrace.gateway.oidc import OidcConfig


def config(keys: str) -> OidcConfig:
    return OidcConfig(issuer="https://id", audience="tailrace", keys=keys, rights={"ops": ["read"]})


@pytest.mark.parametrize(
    "keys",
    [
        "https://id.example.org/keys",
        "keys.json",
        "http://127.0.0.1:8080/keys",
        "http://127.0.0.2/keys",
        "http://localhost:8080/keys",
        "http://LOCALHOST/keys",
        "http://[::1]:8080/keys",
    ],
)
def test_keys_come_from_a_file_over_tls_or_from_this_machine(keys: str) -> None:
    assert config(keys).keys == keys


@pytest.mark.parametrize(
    "keys",
    [
        "http://id.example.org/keys",
        # hosts that only begin as this machine does
        "http://localhost.example.org/keys",
        "http://127.0.0.1.example.org/keys",
        "http://127.0.0.1@id.example.org/keys",
        "http://localhost:x@id.example.org/keys",
        "http://",
        "http://[::1",
    ],
)
def test_keys_in_plain_text_over_a_network_are_refused(keys: str) -> None:
    with pytest.raises(ValidationError, match="keys"):
        config(keys)
