"""The key of an item of a stream: which one of its tailer's it is."""

from __future__ import annotations

#: A partition's name and a position.
ItemKey = tuple[str, int]
