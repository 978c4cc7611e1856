"""The thread of a group's member: it polls, and answers questions between two polls.

The thread lives as long as one membership: when the client raises, it ends with the reason, and another one is begun.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from ...foundation.logger import Logger
from ...model.errors import NotConnected
from ...stores.kafka.client import Place
from ...stores.kafka.errors import explained
from ..rules.group_offsets import Settled, to_tell
from .kafka_member import Committed, Member, MemberOptions, OutOfRange, Polled
from .kafka_member_choice import member_of

#: Seconds for which a poll waits when nothing comes; less while a partition is paused, since it may go on any moment.
POLL_WAIT = 0.05
PAUSED_WAIT = 0.01
#: Seconds between commits to the group.
COMMIT_EVERY = 1.0
#: The most polls whose records are on their way to the event loop.
AHEAD = 2
#: Seconds for which the answer to a commit is waited for.
HEARD_WITHIN = 30.0
#: Seconds that the last commit may take before the group is left.
LAST_COMMIT = 3.0
#: Seconds that leaving the group may take.
END_WITHIN = 10.0

A = TypeVar("A")
log = Logger("tailrace.kafka")


class SessionListener(Protocol):
    """The owner of a session, which is called in the event loop.

    arrived   takes records of polls, each with the generation that `seek` was given
    assigned  takes the partitions that the group gives this member now
    failed    hears that some partitions must be opened again; or (None) that the session is over
    """

    def arrived(self, session: KafkaSession, polled: list[tuple[Polled, int]]) -> None: ...

    def assigned(self, session: KafkaSession, share: frozenset[Place]) -> None: ...

    def failed(self, session: KafkaSession, why: str, places: Iterable[Place] | None) -> None: ...


class KafkaSession:
    """The session of one membership.

    Invariants: `_at` has the partitions that are fetched, each with its next position, `_generations` the same ones;
    `_told` has the offsets of some of them that the group took since each was opened; `full` is replaced by the event
    loop and read by the thread, which pauses the partitions in it. `words`: by topic, what is committed beside its
    offsets.
    """

    def __init__(
        self, options: MemberOptions, listener: SessionListener, name: str, words: Mapping[str, str] | None = None
    ) -> None:
        self.full: frozenset[Place] = frozenset()
        self.settled: dict[Place, Settled] = {}  # offsets for the group, with `seek`'s generation; the event loop's
        self._options = options
        self._name = name
        self._listener = listener
        self._words = words or {}
        self._loop = asyncio.get_running_loop()
        self._questions: queue.SimpleQueue[tuple[Callable[[Member], Any], asyncio.Future[Any]]] = queue.SimpleQueue()
        self._ahead = threading.Semaphore(AHEAD)
        self._ending = threading.Event()
        self._over = ""
        self._at: dict[Place, int] = {}
        self._generations: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._share: frozenset[Place] | None = None
        self._told: dict[Place, int] = {}
        self._commit_at = self._heard_by = 0.0
        self._telling: Mapping[Place, int] | None = None  # the commit that is under way
        self._thread = threading.Thread(target=self._run, name=f"kafka-{options.group}", daemon=True)

    def start(self) -> None:
        """Joins the group, in the thread."""
        self._thread.start()

    async def ask(self, question: Callable[[Member], A]) -> A:
        """Asks a blocking call in the thread. Raises NotConnected when the session is over, or for the client's
        error."""
        if self._over:
            raise NotConnected(self._over)
        future: asyncio.Future[A] = self._loop.create_future()
        self._questions.put((question, future))
        return await future

    async def end(self) -> None:
        """Commits the settled offsets and leaves the group."""
        self._ending.set()
        await self._loop.run_in_executor(None, self._thread.join, END_WITHIN)

    # In the thread.

    def seek(self, member: Member, place: Place, position: int, generation: int) -> None:
        """Has a partition fetched from a position on, as soon as it is not full."""
        if place not in (self._share or ()):
            raise NotConnected(f"the group took partition {place[0]}-{place[1]} away from this member")
        member.seek(place, position)
        member.pause([place])
        self._paused.add(place)
        self._at[place], self._generations[place] = position, generation

    def _run(self) -> None:
        member: Member | None = None
        why = "the group was left"
        try:
            member = member_of(self._options, self._name)
            while not self._ending.is_set():
                self._turn(member)
        except BaseException as error:  # of any kind: nobody else would hear of it
            why = explained(self._options.where, error)
            self._tell(self._listener.failed, why, None)
        finally:
            self._over = why
            if member is not None:
                self._leave(member)
            self._refuse(why)

    def _turn(self, member: Member) -> None:
        while not self._questions.empty():
            self._answer(member, *self._questions.get())
        self._pause_and_resume(member)
        self._commit(member)
        try:
            polled = member.poll(PAUSED_WAIT if self._paused else POLL_WAIT)
        except OutOfRange as error:
            for place in error.positions:
                self._forget(place)
            lowest = min(error.positions.values())
            why = f"{self._options.where}: retention passed position {lowest}, or what was before it is gone"
            self._tell(self._listener.failed, why, list(error.positions))
            polled = []
        self._look_at_share(member)
        # librdkafka tells after each record that there are no more: no news, so nobody is woken.
        arrived = [
            (each, self._generations[each.place])
            for each in polled
            if each.through > self._at.get(each.place, each.through)
        ]
        if arrived:
            self._at.update((each.place, each.through) for each, _ in arrived)
            while not self._ahead.acquire(timeout=0.5):
                if self._ending.is_set():
                    return
            self._loop.call_soon_threadsafe(self._deliver, arrived)

    def _deliver(self, arrived: list[tuple[Polled, int]]) -> None:
        """Hands over records of a poll, in the event loop."""
        self._listener.arrived(self, arrived)
        self._ahead.release()

    def _answer(self, member: Member, question: Callable[[Member], Any], future: asyncio.Future[Any]) -> None:
        try:
            answer = question(member)
        except Exception as error:
            refusal = error if isinstance(error, NotConnected) else NotConnected(explained(self._options.where, error))
            self._loop.call_soon_threadsafe(_refused, future, refusal)
        else:
            self._loop.call_soon_threadsafe(_answered, future, answer)

    def _pause_and_resume(self, member: Member) -> None:
        full = self.full
        stop = [place for place in self._at if place in full and place not in self._paused]
        go = [place for place in self._at if place not in full and place in self._paused]
        if stop:
            member.pause(stop)
            self._paused.update(stop)
        if go:
            member.resume(go)
            self._paused.difference_update(go)

    def _look_at_share(self, member: Member) -> None:
        """Stops partitions that were taken away. Those that were taken and given back are opened again: another member
        may have had them meanwhile."""
        places, fresh = member.assigned()
        back = [place for place in self._at if place in fresh]
        for place in [place for place in self._at if place not in places or place in fresh]:
            self._forget(place)
        if back:
            self._tell(
                self._listener.failed,
                f"{self._options.where}: the group gave the partition to another member and back",
                back,
            )
        share = frozenset(places)
        if share != self._share:
            self._share = share
            self._tell(self._listener.assigned, share)

    def _forget(self, place: Place) -> None:
        self._at.pop(place, None)
        self._generations.pop(place, None)
        self._told.pop(place, None)
        self._paused.discard(place)

    def _commit(self, member: Member, *, now: bool = False) -> bool:
        """Begins to commit new offsets, if it is time (`now`: at once). Returns whether there is nothing to wait for:
        no commit is under way, and none was needed."""
        clock = time.monotonic()
        if self._telling is not None and clock < self._heard_by:
            return False
        if not now and clock < self._commit_at:
            return True
        news = to_tell(dict(self.settled), self._generations, self._told)
        if news:
            self._telling, self._commit_at, self._heard_by = news, clock + COMMIT_EVERY, clock + HEARD_WITHIN
            try:
                words = {place: Committed(at, self._words.get(place[0], "")) for place, at in news.items()}
                member.commit(words, partial(self._heard, news))
            except Exception as error:
                self._heard(news, error)
        return not news

    def _heard(self, news: Mapping[Place, int], error: BaseException | None) -> None:
        if self._telling is news:
            self._telling = None
        if error is None:
            self._told.update((place, at) for place, at in news.items() if place in self._at)
        else:
            # A rebalance, or the coordinator moves: it is committed again. Only our own checkpoint counts.
            log.debug("the group did not take a commit", group=self._options.group, reason=str(error))

    def _leave(self, member: Member) -> None:
        """Commits once more and closes the member. The commit may fail for the reason that ended the session; a member
        that is not closed goes on telling the group that it lives, and every later one waits for it."""
        limit = time.monotonic() + LAST_COMMIT
        try:
            while not self._commit(member, now=True) and time.monotonic() < limit:
                member.poll(PAUSED_WAIT)  # so that a rebalance under way comes to its end
        except Exception as error:
            log.debug("the last commit failed", group=self._options.group, reason=str(error))
        try:
            member.close()
        except Exception as error:
            log.warning(
                "leaving the group failed", group=self._options.group, reason=explained(self._options.where, error)
            )

    def _refuse(self, why: str) -> None:
        while not self._questions.empty():
            _, future = self._questions.get()
            self._call(_refused, future, NotConnected(why))

    def _tell(self, hear: Callable[..., None], *what: object) -> None:
        self._call(hear, self, *what)

    def _call(self, function: Callable[..., None], *what: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *what)


def _answered(future: asyncio.Future[Any], answer: object) -> None:
    if not future.done():
        future.set_result(answer)


def _refused(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
