"""Tokens of an OpenID Connect issuer (JWT), beside a gateway's own; the issuer's keys come from a file or a URL, and
are read again when they change."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..foundation.clock import Clock
from ..foundation.config import Seconds
from ..foundation.duties import Duties
from ..foundation.proxies import stays_here
from ..model.address import Address
from ..model.errors import ConfigError, InvalidRequest, Unavailable
from ..model.plain_text import plain
from ..model.rights import right_of
from ..model.token import PREFIX, Token, hash_of
from .rules.oidc_claims import token_of
from .rules.tokens import KnownTokens

#: Signature algorithms with public keys: a party that can check a token cannot make one.
ALGORITHMS = ["ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA", "Ed25519"]
KEY_TYPES = ("EC", "RSA", "OKP")
#: The most characters of a token, bytes of keys, and tokens that are remembered as good.
LONGEST, KEYS_BYTES, REMEMBERED = 7000, 1 << 20, 1000
#: Seconds that an issuer gets to answer with its keys, between looks for an unknown key, and after a failed look.
PATIENCE, SOONEST, AGAIN = 10.0, 10.0, 5.0
#: Keys that are tried for one token that does not name its own.
MOST_TRIED = 16
EXTRA = 'tokens of an issuer need the extra "oidc": pip install "tailrace[oidc]"'

#: Public keys, each with its `kid`, if it has one.
IssuerKeys = Sequence[tuple[Any, str | None]]

_LOG = logging.getLogger("tailrace.gateway")


class OidcConfig(BaseModel):
    """An OpenID Connect issuer whose tokens (JWT) are accepted at `token_listen`.

    issuer    the issuer's name, as its tokens have it (`iss`)
    audience  the audience that tokens must have (`aud`)
    keys      the issuer's public keys (JWKS): a file, or https://… (http only on loopback)
    claim     the claim whose values give rights here (groups)
    rights    for each value of that claim a list of rights: {ops: [read, operate], shop: [submit:send_email@acme]}
    renew     how often keys of a URL are fetched again (5 min); for an unknown key they are fetched at once
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    keys: str = Field(min_length=1)
    claim: str = Field(default="groups", min_length=1)
    rights: dict[str, list[str]] = Field(min_length=1, max_length=1000)
    renew: Seconds = Field(default=300.0, ge=1)

    @field_validator("rights")
    @classmethod
    def _are_rights(cls, given: dict[str, list[str]]) -> dict[str, list[str]]:
        try:
            for each in given.values():
                _ = [right_of(text) for text in each]
        except InvalidRequest as error:
            raise ValueError(str(error)) from None
        return given

    @field_validator("keys")
    @classmethod
    def _are_safe(cls, keys: str) -> str:
        if keys.startswith("http://") and not Address(urlsplit(keys).hostname or "", 0).loopback:
            raise ValueError(
                "expected https://…, http on loopback (127.0.0.1, ::1 or localhost), or a file: over http anybody "
                "on the way could replace the keys"
            )
        return keys


class IssuedTokens:
    """The gateway's own tokens and those of an issuer. `start` begins to follow the issuer's keys."""

    def __init__(self, own: KnownTokens, config: OidcConfig, clock: Clock, duties: Duties) -> None:
        try:
            import joserfc  # noqa: F401 - an extra
        except ImportError:
            raise ConfigError(EXTRA) from None
        self._own = own
        self._config = config
        self._rights = {value: tuple(map(right_of, each)) for value, each in config.rights.items()}
        self._clock = clock
        self._duties = duties
        self._keys: IssuerKeys | None = None
        self._told = b""
        self._good: dict[str, Token] = {}  # by hash
        self._unknown = asyncio.Event()

    def start(self) -> None:
        """Begins to follow the issuer's keys."""
        self._duties.begin(self._keep(), "gateway: keys of the issuer")

    def shown(self, secret: str, now: float) -> Token:
        """The token of a secret. Raises InvalidRequest for a wrong one, Unavailable while no keys are known."""
        if secret.startswith(PREFIX):
            return self._own.shown(secret, now)
        if len(secret) > LONGEST or secret.count(".") != 2:
            raise InvalidRequest("the token is neither one of this platform nor a signed one (JWT)")
        known = self._good.get(name := hash_of(secret))
        if known is not None:
            if why := self.ended(known, now):
                self._good[name] = replace(known, until=0.0)  # it stays ended though the clock is set back
                raise InvalidRequest(why)
            return known
        config = self._config
        found = token_of(
            self._claims(secret),
            issuer=config.issuer,
            audience=config.audience,
            claim=config.claim,
            rights=self._rights,
            now=now,
        )
        while len(self._good) >= REMEMBERED:
            del self._good[next(iter(self._good))]
        self._good[name] = found
        return found

    def ended(self, token: Token, now: float) -> str:
        """The reason not to accept a token any longer; empty: it is accepted."""
        if token.hash:
            return self._own.ended(token, now)
        return f"the token of {token.name} has expired: ask the issuer for another one" if now >= token.until else ""

    def _claims(self, secret: str) -> dict[str, Any]:
        from joserfc import errors, jwt

        if self._keys is None:
            self._unknown.set()
            raise Unavailable(f"the keys of {self._config.issuer} are not known yet")
        wrong: Exception | None = None
        keys, sure = keys_for(secret, self._keys)
        for key in keys:
            try:
                return dict(jwt.decode(secret, key, algorithms=ALGORITHMS).claims)
            except (errors.JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
                wrong = error
        if not sure:
            self._unknown.set()
        if wrong is None:
            raise InvalidRequest(f"the token is signed by a key that {self._config.keys} does not have")
        raise InvalidRequest(f"the token's signature is not right ({plain(wrong, 100).strip(': ')})")

    async def _keep(self) -> None:
        """Reads the keys at once, then regularly, and soon after a token with an unknown key."""
        remote, asked = self._config.keys.startswith(("http://", "https://")), False
        while True:
            self._unknown.clear()
            try:
                told = await self._fetched() if remote else await asyncio.to_thread(self._read)
                self._take(told)
            except ConfigError as error:
                if self._duties.ails("reading the issuer's keys", str(error), self._clock.monotonic()):
                    _LOG.warning("%s", error)
                await asyncio.sleep(AGAIN)
                continue
            self._duties.well("reading the issuer's keys")
            await asyncio.sleep(SOONEST if asked else 0.0)
            try:
                async with asyncio.timeout(self._config.renew if remote else SOONEST):
                    await self._unknown.wait()
                    asked = True
            except TimeoutError:
                asked = False

    def _take(self, told: bytes) -> None:
        if told == self._told:
            return
        self._keys, unread = issuer_keys(told, self._config.keys)
        self._told = told
        for why in unread:
            _LOG.warning("%s: a key is left out, since it cannot be read: %s", self._config.keys, why)
        if not self._keys:
            _LOG.warning("%s has no keys: no token of %s is taken", self._config.keys, self._config.issuer)
        self._good.clear()  # tokens of a key that is gone are unknown

    def _read(self) -> bytes:
        try:
            with Path(self._config.keys).open("rb") as file:
                found = file.read(KEYS_BYTES + 1)
        except OSError as error:
            raise ConfigError(f"{self._config.keys}: {error.strerror}; expected the issuer's keys (JWKS)") from None
        _bounded(found, self._config.keys)
        return found

    async def _fetched(self) -> bytes:
        import aiohttp

        where = self._config.keys
        try:
            limit = aiohttp.ClientTimeout(total=PATIENCE)
            async with (
                aiohttp.ClientSession(timeout=limit, trust_env=not stays_here(where)) as session,
                session.get(where, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise ConfigError(f"{where} answers {answer.status}; expected the issuer's keys (JWKS)")
                found = bytearray()
                async for piece in answer.content.iter_any():  # a read gives the bytes so far, not all of them
                    found += piece
                    _bounded(found, where)
                return bytes(found)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ConfigError(f"{where} does not answer: {plain(error, 200) or type(error).__name__}") from None


def _bounded(found: bytes | bytearray, where: str) -> None:
    if len(found) > KEYS_BYTES:
        raise ConfigError(f"{where}: larger than {KEYS_BYTES} bytes; keys are never that large")


def issuer_keys(told: bytes, where: str) -> tuple[IssuerKeys, list[str]]:
    """The public keys in a JSON text, and why others cannot be read. A list that is empty counts as any other: the
    issuer takes its keys back by it. Raises ConfigError for what is no list of keys."""
    from joserfc import errors
    from joserfc.jwk import JWKRegistry

    try:
        listed: Sequence[Any] = json.loads(told)["keys"]
        if not isinstance(listed, list):
            raise TypeError("keys is no list")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(f"{where}: no keys of an issuer (JWKS): {plain(error, 200)}") from None
    found: list[tuple[Any, str | None]] = []
    unread = []
    for place, key in enumerate(listed):
        if not isinstance(key, dict) or (key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"):
            try:
                kid = key.get("kid")
                found.append((JWKRegistry.import_key(key), kid if isinstance(kid, str) else None))
            except (errors.JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                unread.append(f"key {place}: {plain(error, 200) or type(error).__name__}")
    return found, unread


def keys_for(secret: str, known: IssuerKeys) -> tuple[list[Any], bool]:
    """The keys by which a token may be signed, and whether another look at the issuer could add none: that of its
    `kid`, else those that have none; without a `kid` every key. Raises InvalidRequest for what is no token."""
    try:
        head = json.loads(base64.urlsafe_b64decode(secret.partition(".")[0] + "=="))
        kid = head.get("kid")
    except (ValueError, AttributeError, RecursionError) as error:
        raise InvalidRequest(f"the token's header cannot be read ({plain(error, 100)})") from None
    named = [key for key, its in known if its is not None and its == kid]
    if named:
        return named[:MOST_TRIED], True
    return [key for key, its in known if kid is None or its is None][:MOST_TRIED], False
