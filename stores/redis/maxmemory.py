"""Scripts that a server runs when its `maxmemory` is reached: those that read, and those that free or settle.

Redis refuses a script before its first write, so nothing is half done (its flags, Redis 7). Whoever grows is told
StoreFull; whoever settles, renews or takes back goes on.
"""

from __future__ import annotations

from .server import Script


def reads(text: str) -> Script:
    """Writes nothing."""
    return Script(f"#!lua flags=no-writes\n{text}")


def settles(text: str) -> Script:
    """Ends or frees something, or keeps hold of it: it runs when the server is full."""
    return Script(f"#!lua flags=allow-oom\n{text}")


def grows(text: str) -> Script:
    """Adds something: it is refused when the server is full."""
    return Script(f"#!lua\n{text}")
