"""Scripts on a server whose `maxmemory` is reached: those that read, free or settle go on running, those that add are
refused.

Redis refuses a script before its first write, so nothing is half done (script flags, Redis 7). A script that adds
raises StoreFull; one that settles, renews or takes back runs.
"""

from __future__ import annotations

from .server import Script


def reads(text: str) -> Script:
    """A script that writes nothing."""
    return Script(f"#!lua flags=no-writes\n{text}")


def settles(text: str) -> Script:
    """A script that ends or frees something, or renews a hold on it: it runs when the server is full."""
    return Script(f"#!lua flags=allow-oom\n{text}")


def grows(text: str) -> Script:
    """A script that adds something: it is refused when the server is full."""
    return Script(f"#!lua\n{text}")
