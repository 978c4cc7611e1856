"""Tokens that were revoked, remembered outside the data directory in the user's run directory, by the name of the
state: a copy that is put back knows nothing of them.

`since`: from when on every revocation is in the file. A copy that was taken before that may hold tokens of whose end
nobody knows any more.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..model.token import Token
from .remembered_heights import FOLDER

#: Most tokens of a file; the oldest ones are forgotten, and `since` moves on.
MOST = 10_000
#: Most bytes of a file that are read.
_LARGEST = 4 << 20


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
