"""Identity of a user, for the records of operators' acts."""

from __future__ import annotations

import contextlib
import getpass
import socket


def whoami() -> str:
    """The user as user@host; a user without a name is `?`."""
    user = "?"
    with contextlib.suppress(KeyError, OSError, ImportError):
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()}"
