"""Audit of the stores after each commit, and when everything is over. Read from outside of every host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from ...model.audit import HELD, IN_FLIGHT
from ...model.claim import State
from ...model.ledger import LedgerPlace
from ...model.parked import due_function, parked_from
from ...stores.log.batch import decode as decode_batch
from ...tailers.rules.frontier import decode as decode_ahead
from ...tailers.supervisor import DUE
from .client import WorldClient
from .guests import Guest
from .host import Host
from .journal import Journal
from .parts import QUEUE, STREAM, TIMED
from .plan import Plan
from .sqlite_disk import Disk

#: Streams of the delay service and what is due, by the beginning of their names.
_RUNGS = "delay."
#: First attempts that fail before a function that was well is frozen, at most (docs/laws.md, law 7).
COPIES = 45
_EVER_PARKED = "SELECT items FROM ledger_ended UNION ALL SELECT count(*) FROM ledger WHERE place IN (?, ?, ?)"
_ROW = "SELECT entry ->> 4, entry ->> 6 FROM ledger WHERE source = ? AND position = ?"
_TASK = "SELECT attempts, throttles FROM tasks WHERE id = ?"
_WAITING = (int(LedgerPlace.PARKING), int(LedgerPlace.PARKED), int(LedgerPlace.RUNNING))


class StoreAudit:
    """Audit that knows where every workload is. Ids of the stream are `orders/0/<position>`, as the tailer makes
    them."""

    def __init__(self, plan: Plan, disk: Disk, journal: Journal, client: WorldClient) -> None:
        self._plan = plan
        self._disk = disk
        self._journal = journal
        self._client = client
        self._passed = {STREAM: 0, TIMED: 0} if plan.schedules else {STREAM: 0}
        self.settled: dict[str, float] = {}  # runs of schedules: when the store first had them as over
        self._died: set[str] = set()  # dead letters of files that were put back
        self.redriven: Set[str] = frozenset()  # ids of letters that became workloads
        self.guests: list[Guest] = []
        self.known_as: Callable[[str], Set[str]] = lambda id_: {id_}  # ids of the queue, by what a client was told
        journal.failures = self.failures
        journal.is_over = self.ended

    # ---- after each commit

    def committed(self, file: str) -> None:
        """Checks after a commit of the state that each item a checkpoint has passed is done, dead or durably parked
        (law 3)."""
        if file == "state":
            for stream in self._passed:
                self._committed(stream)

    def _committed(self, stream: str) -> None:
        position, ahead = self._mark(stream, "0")
        passed = self._passed[stream]
        if position < passed:
            self._journal.wrong(f"the checkpoint of {stream} went back from {passed} to {position}")
        settled = [*range(passed, position)]
        settled += [position + index for index, bit in enumerate(decode_ahead(ahead)) if bit]
        self._passed[stream] = max(passed, position)
        if stream == TIMED:
            for each in settled:
                self.settled.setdefault(f"{stream}/0/{each}", self._journal.now)
        loose = [id_ for id_ in (f"{stream}/0/{each}" for each in settled) if not self._done(id_)]
        if loose:
            known = self._dead() | self.redriven | self._parked() | self._may_skip(stream)
            for id_ in loose:
                if id_ not in known:
                    self._journal.wrong(f"the checkpoint passed {id_}, which is neither done nor parked nor dead")

    def _may_skip(self, stream: str) -> set[str]:
        """Ids of runs that may be passed over while the run before them is not over; timetables.py checks that it was
        not."""
        if stream != TIMED:
            return set()
        skipping = {timed.name for timed in self._plan.schedules if timed.overlap == "skip"}
        rows = self._disk.rows("state", "SELECT position, schedule FROM schedule_runs")
        return {f"{TIMED}/0/{position}" for position, name in rows if name in skipping}

    def restoring(self) -> None:
        """Notes the dead letters that exist just before the files are put back."""
        self._died |= self._dead()

    def restored(self) -> None:
        """Reads the checkpoints again: the files were put back to an older copy."""
        self._passed = {stream: self._mark(stream, "0")[0] for stream in self._passed}

    def _done(self, id_: str) -> bool:
        story = self._journal.stories.get(id_)
        return story is not None and any(run.how == "ok" for run in story.executions)

    def ended(self, id_: str) -> bool:
        """Whether a workload was done, or was a dead letter, at some time."""
        return self._done(id_) or id_ in self._died or id_ in self.redriven or id_ in self._dead()

    def failures(self, id_: str) -> int:
        """Attempts and throttles of a workload as its queue or the ledger counts them."""
        source, _, position = id_.rpartition("/0/")
        if source:
            rows = self._disk.rows("state", _ROW, (source, int(position)))
        else:
            rows = self._disk.rows("queue", _TASK, (int(id_, 16),))
        return sum(sum(row) for row in rows)

    def _parked(self) -> set[str]:
        """Ids of everything in the delay service's streams, whether moved on or not."""
        rows = self._disk.rows("delay", "SELECT columns FROM batches")
        return {parked_from(headers, b"").id for (columns,) in rows for headers in decode_batch(columns).header_sets}

    def buried(self) -> Set[str]:
        """Ids of all dead letters, also of those that became workloads again."""
        return self._dead() | self.redriven

    def _dead(self) -> set[str]:
        return {id_ for (id_,) in self._disk.rows("state", "SELECT id FROM dead_letters")}

    def _mark(self, source: str, partition: str) -> tuple[int, bytes]:
        query = "SELECT position, ahead FROM checkpoint_marks WHERE source = ? AND partition = ?"
        rows = self._disk.rows("state", query, (source, partition))
        return rows[0] if rows else (0, b"")

    # ---- when everything should be over

    def over(self) -> bool:
        """Whether nothing is left to do."""
        return (
            len(self._client.accepted) == len(self._plan.items)
            and len(self._client.scheduled) == len(self._plan.schedules)
            and not self._journal.live
            and next(self._pending(), None) is None
        )

    def unfinished(self) -> list[str]:
        """Lines for people about work that is not over, eight at most."""
        missing = sorted({item.n for item in self._plan.items} - self._client.accepted.keys())
        missing += sorted({timed.n for timed in self._plan.schedules} - self._client.scheduled.keys())
        found = [f"item {n} was never accepted" for n in missing[:5]]
        found += [f"{id_} still runs in {run.where}" for id_, run in self._journal.live.items()]
        found += [*self._pending()]
        return [f"unfinished: {line}" for line in found[:8]]

    def _pending(self) -> Iterator[str]:
        for guest in self.guests:
            yield from guest.pending()
        for number, state in self._disk.rows(
            "queue", "SELECT id, state FROM tasks WHERE state < ?", (int(State.SUCCESS),)
        ):
            yield f"queue item {number:016x} is {State(state).label}"
        for (name,) in self._disk.rows("state", "SELECT name FROM schedules WHERE next_at > 0"):
            yield f"the schedule {name} is not over"
        for file in ("log", "delay", "state"):
            for stream, end in self._ends(file):
                position, _ = self._mark(*_reader(stream))
                if position < end:
                    yield f"the checkpoint of {stream} is at {position} of {end}"

    def _ends(self, file: str) -> list[tuple[str, int]]:
        if file == "state":
            return [
                (TIMED, end) for (end,) in self._disk.rows("state", "SELECT position FROM schedule_runs_end") if end
            ]
        query = (
            "SELECT s.name, max(b.first + b.count) FROM batches AS b JOIN streams AS s ON s.id = b.stream GROUP BY s.id"
        )
        return self._disk.rows(file, query)

    def sums(self, hosts: Iterable[Host]) -> None:
        """Checks the platform's own audit of each stream: every position in exactly one class, and all of them
        ended."""
        for host in hosts:
            for overview in host.tailers.overviews() if host.up and host.tailers is not None else ():
                tailer = host.tailers.tailer(overview.name)
                if overview.kind in ("queue", "outbox") or overview.state == "starting" or tailer is None:
                    continue
                if overview.unaccounted:
                    self._journal.wrong(f"audit: {host.name}'s {overview.name} misses {overview.unaccounted} positions")
                for audit in tailer.audits():
                    for line in audit.verdict():
                        self._journal.wrong(f"audit: {host.name}'s {overview.name}/{audit.partition}: {line}")
                    loose = sum(audit.counts.get(name, 0) for name in (IN_FLIGHT, HELD))
                    if loose:
                        self._journal.wrong(f"audit: {overview.name}/{audit.partition}: {loose} have not ended")

    # ---- at rest

    def at_rest(self) -> None:
        """Checks that everything ended as it should, and nothing is left over."""
        dead = self._dead() | self.redriven
        wrong = self._journal.wrong
        for number, state in self._disk.rows("queue", "SELECT id, state FROM tasks"):
            id_ = f"{number:016x}"
            if state != State.CANCELLED:
                self._ended(id_, state == State.FATAL_FAILURE and id_ in dead)
            elif id_ not in self._client.taken_back:
                wrong(f"{id_} is cancelled, and nobody asked for it")
        for stream, end in self._ends("log"):
            for position in range(end):
                id_ = f"{stream}/0/{position}"
                self._ended(id_, id_ in dead)
        for query, what in (
            ("SELECT count(*) FROM ledger", "rows in the ledger"),
            ("SELECT count(*) FROM dead_letters_moving", "letters on their way"),
        ):
            for (count,) in self._disk.rows("state", query):
                if count:
                    wrong(f"left over: {count} {what}")
        for query, what in (
            ("SELECT count(*) FROM claims", "claims"),
            ("SELECT count(*) FROM keyed", "keys"),
        ):
            for (count,) in self._disk.rows("queue", query):
                if count:
                    wrong(f"left over: {count} {what} of the queue")
        for id_, run in self._journal.live.items():
            wrong(f"left over: {id_} runs in {run.where}")
        self._submissions()
        self._after_outages(dead)

    def _submissions(self) -> None:
        """Checks that each item that was brought to the queue is there once, under the id that was told, and that every
        other workload there was made by a guest."""
        accepted = [self._client.accepted[item.n] for item in self._plan.items if item.source == QUEUE]
        told = set[str]().union(*map(self.known_as, accepted), *(guest.made() for guest in self.guests))
        made = {f"{number:016x}" for (number,) in self._disk.rows("queue", "SELECT id FROM tasks")}
        for id_ in sorted(made - told):
            story = self._journal.stories.get(id_)
            what = "" if story is None else f", item {story.n}"
            self._journal.wrong(f"twice: {id_}{what} is in the queue, and nobody was told of it")
        for id_ in sorted(told - made):
            self._journal.wrong(f"lost: {id_} was accepted and is not in the queue")
        for guest in self.guests:
            guest.at_rest()

    def _after_outages(self, dead: set[str]) -> None:
        """Checks that an outage copied few items into the delay service, and killed none (law 7)."""
        if not any(fault.kind == "outage" for fault in self._plan.faults):
            return
        troubled = sum(1 for item in self._plan.items if any(deed.kind != "ok" for deed in item.deeds))
        timed = {timed.name for timed in self._plan.schedules if any(deed.kind != "ok" for deed in timed.deeds)}
        runs = self._disk.rows("state", "SELECT schedule FROM schedule_runs")
        troubled += sum(1 for (name,) in runs if name in timed)
        copied = sum(items for (items,) in self._disk.rows("state", _EVER_PARKED, _WAITING))  # streams are trimmed
        if copied > COPIES * self._plan.schedulers + troubled:
            self._journal.wrong(f"an outage copied {copied} items into the delay service")
        if len(dead) > troubled:
            self._journal.wrong(f"an outage killed {len(dead) - troubled} items")

    def _ended(self, id_: str, buried: bool) -> None:
        story = self._journal.stories.get(id_)
        runs = story.executions if story is not None else []
        if buried:
            expired = bool(runs) and runs[0].n in self._journal.deadlines  # it may have been handed out again, too late
            trees = self._journal.trees
            if trees is not None and trees.unfit(id_):
                return
            if self._done(id_) and not expired and not any(run.how != "ok" for run in runs):
                self._journal.wrong(f"{id_} is a dead letter although it never failed")
        elif not self._done(id_):
            self._journal.wrong(f"lost: {id_} never succeeded ({', '.join(run.how for run in runs) or 'never ran'})")


def _reader(stream: str) -> tuple[str, str]:
    """The source and partition under which the reader of a stream keeps its checkpoint."""
    if stream.startswith(_RUNGS):
        return "@delay", stream
    if (function := due_function(stream)) is not None:
        return DUE, function
    return stream, "0"
