"""Keys of an object store that its client library cannot name.

Stores take any text for a key. The client library knows keys as paths: without empty parts, `.` or `..` as a part, and
control characters. It takes away a slash at the end: such a key is the empty object that stands for a folder.
"""

from __future__ import annotations


def offence(key: str) -> str:
    """The beginning of a key, up to the place that makes it impossible to name; no key that begins so can be named.
    Empty: it can be named."""
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
