"""Bounds of a listener: limits and timeouts for its peers, so that no peer that connects and says nothing, begins a
frame, or never reads can use up a part's memory, its files, or its time."""

from __future__ import annotations

import logging
import resource
from collections import Counter
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

from ..foundation.config import Bytes, Seconds

#: The kinds of refusals and endings that are counted, by their names in metrics.
CONNECTION, GREETING, FRAME, UNREAD_REPLIES = "connection", "greeting", "frame", "unread_replies"

_LOG = logging.getLogger("tailrace.wire")


class PeerBounds(BaseModel):
    """Bounds of one listener.

    connections   at once (1000: a tenth of the files that services usually get, and ten times what a large site has)
    calls         that one connection may have open (16,384: more than the results that a gateway lets wait)
    unsent        bytes of answers that were made and not read, of all peers (256 MiB); beyond it the calls of the peer
                  with most of them are ended
    stalled       seconds in which a peer that has answers waiting must read some of them (20 s)
    greeting      seconds until a connection has named the method that it is for (10 s)
    frame         seconds from a frame's first byte to its last (30 s: 16 MiB at 5 Mbit/s)
    idle          seconds after which a connection without a call is closed (10 min); clients dial again
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    connections: int = Field(default=1000, ge=1, le=1_000_000)
    calls: int = Field(default=16_384, ge=1, le=1_000_000)
    unsent: Bytes = Field(default=256 << 20, ge=1 << 20)
    stalled: Seconds = Field(default=20.0, gt=0)
    greeting: Seconds = Field(default=10.0, gt=0)
    frame: Seconds = Field(default=30.0, gt=0)
    idle: Seconds = Field(default=600.0, gt=0)

    def within_files(self) -> PeerBounds:
        """A copy with connections for at most a sixth of the files that this process may open, since a node has four
        listeners and needs files for everything else."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY or files // 6 >= self.connections:
            return self
        return self.model_copy(update={"connections": max(1, files // 6)})


USUAL = PeerBounds()


class Endings:
    """The refusals and endings at a listener's bounds: counted by kind, logged, and passed to `tell`."""

    def __init__(self, tell: Callable[[str], None] = lambda what: None) -> None:
        self.counts: Counter[str] = Counter()
        self._tell = tell

    def note(self, kind: str, what: str) -> None:
        """Counts one more. The log has the first of each kind, and then one whenever their number has doubled."""
        self.counts[kind] += 1
        count = self.counts[kind]
        if count & (count - 1) == 0:
            _LOG.warning("%s (%d so far)", what, count)
        self._tell(what)
