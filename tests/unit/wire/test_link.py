"""Two links over connections that break anywhere: every frame is handled once and in order, and bounds hold."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import SessionLost
from tailrace.wire import link as subject
from tailrace.wire.link import ACK_EVERY, Link
from tailrace.wire.v1 import scheduler_pb2 as pb


def frame(number: int) -> pb.TailerFrame:
    return pb.TailerFrame(cancel=[number])


class Side:
    """One end: it says the numbers 1, 2, 3 … and notes the numbers that it hears."""

    def __init__(self) -> None:
        self.link = Link()
        self.said = 0
        self.heard: list[int] = []
        self.out: deque[bytes] = deque()  # what is under way to the other end
        self.connected = True

    def say(self) -> None:
        if self.link.full or not self.connected:
            return
        self.said += 1
        message = frame(self.said)
        self.link.stamp(message)
        self.out.append(message.SerializeToString())

    def acknowledge(self) -> None:
        if not self.connected:
            return
        message = pb.TailerFrame()
        self.link.stamp(message, carries=False)
        self.out.append(message.SerializeToString())

    def hear(self, other: Side) -> None:
        if other.out:
            message = pb.TailerFrame.FromString(other.out.popleft())
            if self.link.accept(message):
                self.heard.extend(message.cancel)


def cut(sides: tuple[Side, Side]) -> None:
    """Cuts the connection, with everything under way."""
    for side in sides:
        side.out.clear()
        side.connected = False


def resume(sides: tuple[Side, Side]) -> None:
    """Resumes: both sides say what they have handled, and send again what the other has not."""
    a, b = sides
    for side, other in ((a, b), (b, a)):
        side.link.acknowledged(other.link.last_handled)
    for side in sides:
        side.connected = True
        side.out.clear()
        side.out.extend(each.SerializeToString() for each in side.link.unacknowledged())  # type: ignore[attr-defined]


actions = st.lists(st.tuples(st.sampled_from(["say", "hear", "ack", "cut", "resume"]), st.booleans()), max_size=120)


@given(actions)
def test_whatever_breaks_every_frame_is_handled_once_and_in_order(steps: list[tuple[str, bool]]) -> None:
    sides = a, b = Side(), Side()
    for what, first in steps:
        one, other = (a, b) if first else (b, a)
        if what == "say":
            one.say()
        elif what == "hear":
            one.hear(other)
        elif what == "ack":
            one.acknowledge()
        elif what == "cut":
            cut(sides)
        else:
            resume(sides)
        for side, source in ((a, b), (b, a)):
            assert side.heard == list(range(1, len(side.heard) + 1))
            assert len(side.heard) <= source.said
            # What was not handled by the other end is always still there to be sent again
            kept = [each.cancel[0] for each in side.link.unacknowledged()]  # type: ignore[attr-defined]
            unheard = source.heard
            assert kept == list(range(side.said - len(kept) + 1, side.said + 1))
            assert side.said - len(kept) <= len(unheard)
    # When the connection heals and stays, everything arrives
    resume(sides)
    while a.out or b.out:
        a.hear(b)
        b.hear(a)
    assert b.heard == list(range(1, a.said + 1))
    assert a.heard == list(range(1, b.said + 1))
    a.link.acknowledged(b.link.last_handled)
    assert a.link.unacknowledged() == []


def test_a_link_is_full_at_its_frames_and_free_after_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "UNACKNOWLEDGED", 3)
    link = Link()
    for number in range(3):
        assert not link.full
        link.stamp(frame(number))
    assert link.full
    link.acknowledged(1)
    assert not link.full


def test_a_link_is_full_at_its_bytes_and_counts_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "UNACKNOWLEDGED_BYTES", 100)
    link = Link()
    message = pb.TailerFrame(pushes=[pb.Push(items=pb_items(b"x" * 200))])
    for _ in range(5):
        link.stamp(message)
        assert link.full
        link.acknowledged(1 << 40)
        assert not link.full


def pb_items(payload: bytes) -> Any:
    items = pb.Push().items
    items.payload.append(payload)
    return items


def test_an_acknowledgement_is_owed_after_so_many_frames_and_said_with_the_next() -> None:
    link = Link()
    for number in range(1, ACK_EVERY + 1):
        assert not link.owes_ack
        assert link.accept(pb.TailerFrame(link=pb.Link(seq=number)))
    assert link.owes_ack
    answer = pb.TailerFrame()
    link.stamp(answer, carries=False)
    assert (answer.link.seq, answer.link.ack) == (0, ACK_EVERY)
    assert not link.owes_ack
    assert link.unacknowledged() == []


def test_a_frame_that_carries_nothing_is_never_handled() -> None:
    link = Link()
    assert not link.accept(pb.TailerFrame(link=pb.Link(ack=0)))
    assert link.last_handled == 0


def test_a_repeat_is_ignored_but_its_acknowledgement_counts() -> None:
    link = Link()
    link.stamp(frame(1))
    assert link.accept(pb.TailerFrame(link=pb.Link(seq=1)))
    assert not link.accept(pb.TailerFrame(link=pb.Link(seq=1, ack=1)))
    assert link.unacknowledged() == []


def test_a_missing_frame_ends_the_session() -> None:
    link = Link()
    link.accept(pb.TailerFrame(link=pb.Link(seq=1)))
    with pytest.raises(SessionLost, match="frame 3 came after frame 1"):
        link.accept(pb.TailerFrame(link=pb.Link(seq=3)))
