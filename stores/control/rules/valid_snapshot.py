"""The valid snapshot of the control store: the newest, or the one of a store that was set back.

Versions rise, so when two readings overtook each other the one with the higher version is valid. A store that was set
back (a promoted replica, a power cut under a relaxed profile, a restore) has a lower version than its readers know. A
reading that began after the higher version was known cannot have been overtaken by it: then the lower version is valid.
"""

from __future__ import annotations

from ....model.limits import Snapshot


def is_valid(found: Snapshot, before: int, known: Snapshot) -> bool:
    """Whether a snapshot that was read, `found`, is valid, and replaces the known one. `before`: the version that was
    known when the reading began; `known`: the snapshot that is known by now. The same version with other content comes
    from a store that was set back, and written to since."""
    if found.version == known.version:
        return found != known
    return found.version > known.version or found.version < before
