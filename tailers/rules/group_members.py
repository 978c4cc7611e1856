"""Members of a consumer group that belong to another application.

A group hands each partition to one member, whoever that is: what another application is given, this tailer never sees,
and what that one commits would be taken for done. The protocol refuses only who hands out partitions in another way.
"""

from __future__ import annotations

from collections.abc import Iterable

#: The name of our clients without a membership.
OURS = "tailrace"


def client_name(tailer: str) -> str:
    """What the members of one tailer call themselves, in each process."""
    return f"{OURS}-{tailer}" if tailer else OURS


def stranger(members: Iterable[tuple[str, str]], tailer: str) -> str:
    """One member of another application, or of another tailer, as text; empty: there is none. `members`: what each
    calls itself, and its host."""
    found = sorted((name, host.lstrip("/")) for name, host in members if name not in (OURS, client_name(tailer)))
    return f"{found[0][0]!r} at {found[0][1]}" if found else ""
