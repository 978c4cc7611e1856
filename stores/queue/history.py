"""History of ended workloads, bounded by number and by bytes: THE rule, the same on every engine.

Engines estimate what they cannot count exactly: ROW bytes for an ended workload (its row, its dedupe key and the index
of that), and the characters of its reasons and notes.
"""

from __future__ import annotations

#: Bytes of the row of a workload that ended without a reason. 185 were measured on SQLite, with the clients' tokens;
#: pages that are not full make it more.
ROW = 256


def kept(keep: int, ended: int, size: int, most_bytes: int) -> int:
    """Number of ended workloads to keep, at most `keep`: as many of the youngest as fit into `most_bytes` if all are of
    equal size. `ended` workloads take `size` bytes now."""
    if size <= most_bytes or not ended:
        return keep
    return min(keep, ended * most_bytes // size)
