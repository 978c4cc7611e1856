"""Tokens of a state that is put back from a copy, which knows nothing of those that were revoked since: they are
remembered outside the data directory in the user's run directory, by the name of the state, and end again.

`since`: from when on every revocation is in the file. A copy that was taken before that may hold tokens of whose end
nobody knows any more.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ...foundation.clock import Clock
from ...model.token import Token, token_from_text
from ..remembered_heights import FOLDER
from ..sqlite.backup import sync
from ..sqlite.identity import identity
from .sqlite import SqliteControl

#: Most tokens of a file; the oldest ones are forgotten, and `since` moves on.
MOST = 10_000
#: Most bytes of a file that are read.
_LARGEST = 4 << 20

_LOG = logging.getLogger("tailrace.stores")


class RevokedSince(NamedTuple):
    """Hashes of tokens that were revoked, each with its end, complete since a moment (wall clock)."""

    since: float
    until: dict[str, float]


def to_end(tokens: Iterable[Token], taken_at: float, known: RevokedSince | None) -> list[Token]:
    """The tokens of a copy that was taken at a moment which do not hold any more: those that were revoked since, or all
    where nobody knows which were."""
    if known is None or known.since > taken_at:
        return list(tokens)
    return [token for token in tokens if token.hash in known.until]


class RevokedTokens:
    """The revoked tokens of the state of this name. Every method but `read` may raise OSError."""

    def __init__(self, run_dir: Path, state: str) -> None:
        self._folder = run_dir / FOLDER
        self._path = self._folder / f"{state}.revoked"

    def read(self) -> RevokedSince | None:
        """The revoked tokens; None: nothing is remembered here."""
        try:
            with self._path.open("rb") as file:
                said = json.loads(file.read(_LARGEST))
            return RevokedSince(float(said["since"]), {str(name): float(end) for name, end in said["until"].items()})
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def begin(self, now: float) -> None:
        """Makes the file, if there is none: it is complete from now on."""
        if self.read() is None:
            self._write(RevokedSince(now, {}))

    def add(self, token: Token, now: float) -> None:
        """Remembers that a token was revoked, until it would have ended."""
        known = self.read() or RevokedSince(now, {})
        until = {name: end for name, end in known.until.items() if end > now} | {token.hash: token.until}
        since = known.since if len(until) <= MOST else now
        self._write(RevokedSince(since, dict([*until.items()][-MOST:])))

    def keep(self, hashes: set[str], now: float) -> None:
        """Forgets that these were revoked: somebody wants them back."""
        known = self.read() or RevokedSince(now, {})
        self._write(known._replace(until={name: end for name, end in known.until.items() if name not in hashes}))

    def _write(self, said: RevokedSince) -> None:
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        beside = self._path.with_suffix(".new-revoked")
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
        made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "w") as file:
            json.dump(said._asdict(), file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)


def end_in_copy(file: Path, taken_at: float, run_dir: Path, now: float, *, keep: bool) -> tuple[list[str], list[str]]:
    """Ends tokens in a copy of a state that nobody has open: those that were revoked since it was taken, or all where
    nobody knows which were. Returns the names of those that ended, and of those that
    hold. With `keep` all hold, also those that were revoked since."""
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        tokens = [token_from_text(text) for (text,) in connection.execute("SELECT token FROM tokens ORDER BY name")]
        remembered = RevokedTokens(run_dir, identity(connection).store)
        gone = [] if keep else to_end(tokens, taken_at, remembered.read())
        if gone:
            connection.executemany("DELETE FROM tokens WHERE name = ?", [(token.name,) for token in gone])
            connection.execute("UPDATE control_version SET version = version + 1")
    sync(file)
    if keep:
        remembered.keep({token.hash for token in tokens}, now)
    return [token.name for token in gone], [token.name for token in tokens if token not in gone]


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
