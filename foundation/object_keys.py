"""Keys of an object store that its client library cannot name.

Stores take any text for a key. The client library knows keys as paths: without empty parts, `.` or `..` as a part, and
control characters. A slash at the end it takes away: that is the empty object which stands for a folder.
"""

from __future__ import annotations


def offence(key: str) -> str:
    """The beginning of a key, up to what makes it that none can name; every key that begins so is one. Empty: it can be
    named."""
    start = 0
    for part in key.removesuffix("/").split("/"):
        end = start + len(part)
        for place in range(start, end):
            if key[place] < " " or key[place] == "\x7f":
                return key[: place + 1]
        if part in ("", ".", ".."):
            return key[: end + 1]
        start = end + 1
    return ""
