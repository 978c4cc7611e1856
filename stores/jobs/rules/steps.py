"""Steps of what is done with a job: the bounds of one, so that nobody waits for a large tree."""

from __future__ import annotations

#: Items that one step cancels or makes due again, and those that it makes of results that are taken apart.
SOME, EXPANDED = 256, 1000
#: Bytes of results behind which a step ends that drops those that are taken apart.
DROPPED_BYTES = 8 << 20
