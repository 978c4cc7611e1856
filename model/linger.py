"""Lingers (group commit, batching delay): short waits, so that what comes together is written, sent or looked for
together. `docs/lingers.md` has all of them, with their sum for one item."""

from __future__ import annotations

from typing import NamedTuple


class Linger(NamedTuple):
    """A linger of `seconds` from the beginning of one write, frame or look to that of the next."""

    seconds: float

    def rest(self, began: float, now: float) -> float:
        """Seconds that are left of it. A clock that went back leaves no more than all of it."""
        return min(self.seconds, max(0.0, began + self.seconds - now))


#: A frame behind one that took long to send: at most so long, and as a share of that.
FRAMES = Linger(0.005)
#: A hint to other nodes that something may be due.
HINTS = Linger(0.05)
#: A look at an outbox in the queue's own file.
OUTBOX_LOOKS = Linger(0.05)
#: A look at the ends of streams on Kafka that somebody waits for.
KAFKA_LOOKS = Linger(0.05)
#: A submission on a server, for a claim that looks just now (hand-over).
HAND_OVER = Linger(0.02)
#: A move of a delay queue behind one that was not a full batch.
DUE_MOVES = Linger(0.05)
#: A move of a rung: what becomes due within so much of the rung's wait, and at most so long, moves together.
RUNG_MOVES = Linger(0.25)
#: A look for workloads whose ends are waited for: nearer ones are made as one.
RESULT_LOOKS = Linger(0.0005)
