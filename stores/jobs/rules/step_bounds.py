"""Bounds of one step on a job, so that a large tree does not delay others."""

from __future__ import annotations

#: Most items that one step cancels or makes due again, and most items that it makes of lists (expansion).
SOME, EXPANDED = 256, 1000
#: Bytes of results after which a step ends that drops lists to be expanded.
DROPPED_BYTES = 8 << 20
