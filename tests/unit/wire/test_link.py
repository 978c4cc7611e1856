"""A link delivers every frame once and in order, wherever its connections are cut, and keeps a bounded number."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tailrace.sdk.model.errors import SessionLost
from tailrace.sdk.wire.link import ACK_EVERY, UNACKNOWLEDGED, UNACKNOWLEDGED_BYTES, Link
from tailrace.sdk.wire.v1 import scheduler_pb2 as pb


def frame(number: int = 0, size: int = 0) -> pb.TailerFrame:
    return pb.TailerFrame(cancel=[number] if number else [], hello=pb.Hello(name="x" * size) if size else None)


class End:
    """One end: a link, what it was given to send, what came out, and the wire to the other end."""

    def __init__(self) -> None:
        self.link = Link()
        self.said: list[int] = []
        self.heard: list[int] = []
        self.wire: deque[bytes] = deque()

    def send(self) -> None:
        if not self.link.full:
            message = frame(len(self.said) + 1)
            self.said.append(len(self.said) + 1)
            self.link.stamp(message)
            self.wire.append(message.SerializeToString())

    def acknowledge(self) -> None:
        message = frame()
        self.link.stamp(message, carries=False)
        self.wire.append(message.SerializeToString())

    def hear(self, data: bytes) -> None:
        message = pb.TailerFrame.FromString(data)
        if self.link.accept(message):
            self.heard.extend(message.cancel)


class Conversation(RuleBasedStateMachine):
    """Both ends speak when they like; frames arrive when the wire likes; the connection is cut at any point."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = (End(), End())

    @rule(side=st.integers(0, 1), count=st.integers(1, 40))
    def speak(self, side: int, count: int) -> None:
        for _ in range(count):
            self.ends[side].send()

    @rule(side=st.integers(0, 1))
    def say_nothing_but_an_acknowledgement(self, side: int) -> None:
        self.ends[side].acknowledge()

    @rule(side=st.integers(0, 1), count=st.integers(1, 60))
    def deliver(self, side: int, count: int) -> None:
        sender, receiver = self.ends[side], self.ends[1 - side]
        for _ in range(min(count, len(sender.wire))):
            receiver.hear(sender.wire.popleft())

    @rule(lost=st.tuples(st.booleans(), st.booleans()))
    def cut_and_resume(self, lost: tuple[bool, bool]) -> None:
        """What was on the wire is gone; `lost`: the hello or the welcome was, too, and the next attempt succeeds."""
        dialing, serving = self.ends
        for end in self.ends:
            end.wire.clear()
        hello_lost, welcome_lost = lost
        if not hello_lost:
            serving.link.acknowledged(dialing.link.last_handled)
        if not hello_lost and not welcome_lost:
            dialing.link.acknowledged(serving.link.last_handled)
        serving.link.acknowledged(dialing.link.last_handled)
        dialing.link.acknowledged(serving.link.last_handled)
        for end in self.ends:
            end.wire.extend(each.SerializeToString() for each in end.link.unacknowledged())

    @invariant()
    def what_was_heard_is_the_beginning_of_what_was_said(self) -> None:
        for sender, receiver in (self.ends, self.ends[::-1]):
            assert receiver.heard == sender.said[: len(receiver.heard)]

    @invariant()
    def what_is_kept_covers_what_was_not_heard(self) -> None:
        for sender, receiver in (self.ends, self.ends[::-1]):
            kept = [number for each in sender.link.unacknowledged() for number in each.cancel]
            assert kept == sender.said[len(sender.said) - len(kept) :]
            assert len(kept) >= len(sender.said) - len(receiver.heard)
            assert len(kept) <= UNACKNOWLEDGED

    def teardown(self) -> None:
        """A last cut that heals: everything arrives, and after one more acknowledgement nothing is kept."""
        self.cut_and_resume((False, False))
        for side in (0, 1):
            self.deliver(side, len(self.ends[side].wire))
        for side in (0, 1):
            assert self.ends[1 - side].heard == self.ends[side].said
            self.ends[side].acknowledge()
            self.deliver(side, 1)
        assert not self.ends[0].link.unacknowledged()
        assert not self.ends[1].link.unacknowledged()


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_link_is_full_at_its_number_of_frames_and_opens_with_acknowledgements() -> None:
    link = Link()
    for number in range(UNACKNOWLEDGED):
        assert not link.full
        link.stamp(frame(number + 1))
    assert link.full
    link.acknowledged(1)
    assert not link.full
    assert len(link.unacknowledged()) == UNACKNOWLEDGED - 1


def test_a_link_is_full_at_its_bytes() -> None:
    link = Link()
    size = UNACKNOWLEDGED_BYTES // 4
    for _ in range(4):
        assert not link.full
        link.stamp(frame(size=size))
    assert link.full
    link.acknowledged(4)
    assert not link.full


def test_a_frame_that_carries_nothing_has_no_number_and_is_not_kept() -> None:
    link, other = Link(), Link()
    message = frame()
    link.stamp(message, carries=False)
    assert message.link.seq == 0
    assert not link.unacknowledged()
    assert not other.accept(message)


def test_an_acknowledgement_is_owed_after_so_many_frames_and_no_more_once_it_was_said() -> None:
    sender, receiver = Link(), Link()
    for number in range(ACK_EVERY):
        assert not receiver.owes_ack
        message = frame(number + 1)
        sender.stamp(message)
        assert receiver.accept(message)
    assert receiver.owes_ack
    answer = frame(1)
    receiver.stamp(answer)
    assert not receiver.owes_ack
    assert sender.accept(answer)
    assert not sender.unacknowledged()


def test_a_repeated_frame_is_refused() -> None:
    sender, receiver = Link(), Link()
    message = frame(1)
    sender.stamp(message)
    assert receiver.accept(message)
    assert not receiver.accept(message)


def test_a_missing_frame_means_that_the_session_is_lost() -> None:
    sender, receiver = Link(), Link()
    for _ in range(2):
        message = frame(1)
        sender.stamp(message)
    with pytest.raises(SessionLost, match="frame 2 came after frame 0"):
        receiver.accept(message)
