"""Members of a consumer group that belong to another application.

A group hands each partition to one of its members, of whichever application: this tailer never sees what another
application is given, and an offset that the other one commits would be taken for done here. The protocol refuses only
members that hand out partitions in another way.
"""

from __future__ import annotations

from collections.abc import Iterable

#: The name of our clients without a membership.
OURS = "tailrace"


def client_name(tailer: str) -> str:
    """The client name of all members of one tailer, in each process."""
    return f"{OURS}-{tailer}" if tailer else OURS


def stranger(members: Iterable[tuple[str, str]], tailer: str) -> str:
    """One member of another application, or of another tailer, as text; empty: there is none. `members`: the name and
    the host of each."""
    found = sorted((name, host.lstrip("/")) for name, host in members if name not in (OURS, client_name(tailer)))
    return f"{found[0][0]!r} at {found[0][1]}" if found else ""
