"""The snapshot of the control store that stands: the newest, or that of a store that was set back.

Versions rise, so of two readings that overtook each other the higher one stands. A store that was set back (a promoted
replica, a power cut under a relaxed profile, a restore) tells a lower version than one who lives on knows. A reading
that began after the higher version was known cannot have been overtaken by it: then what is told is what there is.
"""

from __future__ import annotations

from ....model.limits import Snapshot


def stands(found: Snapshot, before: int, known: Snapshot) -> bool:
    """Whether what was found is to be taken. `before`: the version that was known when the reading began; `known`: what
    is known by now. The same version with other content is that of a store that was set back, and written to since."""
    if found.version == known.version:
        return found != known
    return found.version > known.version or found.version < before
