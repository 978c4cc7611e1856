"""A link: one end of a session that outlives its connections.

Frames that carry something are numbered; each side says which number it has handled; after a reconnection the frames
not yet acknowledged are sent again and repeats are ignored. So a break that heals restarts nothing (L3), and an
assignment or a push that was "already seen" is refused (L5) because its number was.

Pure: no socket and no clock. `session.py` moves the frames.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol, TypeVar

from ..model.errors import SessionLost
from .v1 import scheduler_pb2 as pb

#: Frames sent and not yet acknowledged; a sender at this bound waits for acknowledgements.
UNACKNOWLEDGED = 512
#: Bytes of such frames.
UNACKNOWLEDGED_BYTES = 64 << 20
#: Frames handled before an acknowledgement is due even if there is nothing else to send.
ACK_EVERY = 16


class Frame(Protocol):
    """Any of the four session messages."""

    @property
    def link(self) -> pb.Link: ...

    def ByteSize(self) -> int: ...


F = TypeVar("F", bound=Frame)


class Link:
    """One end of a session (a sequence-numbered channel). Invariants: `_sent` holds exactly the frames with numbers in
    (acked, last_sent]; a number is handled once."""

    def __init__(self) -> None:
        self._last_sent = 0
        self._last_handled = 0
        self._last_ack_sent = 0
        self._sent: deque[tuple[int, Frame, int]] = deque()
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether too much is unacknowledged to send more."""
        return len(self._sent) >= UNACKNOWLEDGED or self._bytes >= UNACKNOWLEDGED_BYTES

    @property
    def owes_ack(self) -> bool:
        """Whether enough was handled that the other side should be told."""
        return self._last_handled - self._last_ack_sent >= ACK_EVERY

    def stamp(self, frame: Frame, carries: bool = True) -> None:
        """Numbers a frame about to be sent, and keeps it until it is acknowledged. A frame that carries nothing is
        only an acknowledgement."""
        link = frame.link
        link.ack = self._last_ack_sent = self._last_handled
        if carries:
            self._last_sent += 1
            link.seq = self._last_sent
            size = frame.ByteSize()
            self._sent.append((self._last_sent, frame, size))
            self._bytes += size

    def accept(self, frame: Frame) -> bool:
        """Takes note of a frame that came; False: it was handled before, or carries nothing. Raises SessionLost when
        a number is missing: the two ends are not in the same session."""
        link = frame.link
        self.acknowledged(link.ack)
        if link.seq <= self._last_handled:
            return False
        if link.seq != self._last_handled + 1:
            raise SessionLost(f"frame {link.seq} came after frame {self._last_handled}")
        self._last_handled = link.seq
        return True

    def acknowledged(self, number: int) -> None:
        """Forgets the frames that the other side has handled, all up to `number`."""
        sent = self._sent
        while sent and sent[0][0] <= number:
            self._bytes -= sent.popleft()[2]

    @property
    def next(self) -> int:
        """Number of the next frame that carries something."""
        return self._last_sent + 1

    @property
    def last_heard(self) -> int:
        """Number of the last frame that the other side has acknowledged."""
        return self._sent[0][0] - 1 if self._sent else self._last_sent

    @property
    def last_handled(self) -> int:
        """Number of the last frame that this side has handled, for the handshake."""
        return self._last_handled

    def unacknowledged(self) -> list[Frame]:
        """The frames to send again after a reconnection, in order."""
        return [frame for _, frame, _ in self._sent]
