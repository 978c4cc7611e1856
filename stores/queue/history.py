"""History of ended workloads, bounded by number and by bytes: THE rule, the same on every engine.

What an engine cannot count exactly it estimates: ROW bytes for a workload that has ended (its row, its dedupe key and
that one's index), and the characters of the reasons and notes beside.
"""

from __future__ import annotations

#: Bytes of a row of what has ended without a reason. On SQLite 185 were measured, with the clients' tokens; pages that
#: are not full make it more.
ROW = 256


def kept(keep: int, ended: int, size: int, most_bytes: int) -> int:
    """How many of `ended` workloads that take `size` bytes may be kept, of `keep` at most: as many of the youngest as
    fit into `most_bytes`, were they all alike."""
    if size <= most_bytes or not ended:
        return keep
    return min(keep, ended * most_bytes // size)
