"""Tokens of a backup that is put back: those that were revoked since it was taken end, and where nothing is known of
that, all of them do unless somebody wants to keep them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ...model.token import token_from_text
from ..revoked_tokens import RevokedTokens, to_end
from ..sqlite.backup import sync
from ..sqlite.identity import identity


def end_in_copy(file: Path, taken_at: float, run_dir: Path, now: float, *, keep: bool) -> tuple[list[str], list[str]]:
    """Ends tokens in a copy of a state that nobody has open. Returns the names of those that ended, and of those that
    hold. With `keep` all hold, also those that were revoked since."""
    with closing(sqlite3.connect(file)) as connection, connection:
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
