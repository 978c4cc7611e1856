"""Tokens of a state that was put back from a copy by hand: those that were revoked since end again. Beside it, the note
of revocations outside the data directory."""

from __future__ import annotations

import logging

from ..foundation.clock import Clock
from ..model.token import Token
from ..stores.control.sqlite import SqliteControl
from ..stores.revoked_tokens import RevokedTokens

_LOG = logging.getLogger("tailrace.stores")


async def end_revoked(control: SqliteControl, remembered: RevokedTokens, clock: Clock, *, moved: bool) -> None:
    """Ends tokens that a state holds again although they were revoked, and remembers revocations from now on. `moved`:
    the state was put back from a copy."""
    known, tokens = remembered.read(), (await control.snapshot()).tokens
    for token in tokens:
        if known is not None and token.hash in known.until:
            _LOG.warning("the token %s was revoked, and the copy that was put back has it again: it ended", token.name)
            await control.remove_token(token.name)
    if moved and known is None and tokens:
        _LOG.warning(
            "tokens of the copy that was put back hold again, also those that were revoked since it was taken: %s; "
            "`tailrace auth token revoke` ends one",
            ", ".join(token.name for token in tokens),
        )

    def remember(token: Token) -> None:
        try:
            remembered.add(token, clock.wall())
        except OSError as error:
            _LOG.error("a restore may give the token %s back: its revocation is not noted (%s)", token.name, error)

    try:
        remembered.begin(clock.wall())
    except OSError as error:
        _LOG.warning("revocations of tokens are not noted outside the data directory: %s", error)
    control.on_revoked = remember
