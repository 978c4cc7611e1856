"""The way back: items end, their outcomes go to the session that pushed them, and their slots and limits become
free."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, Ended, Outcomes
from .evidence import Evidence
from .limits import Limits
from .recorder import Recorder
from .rules.explain import SENTENCES, Reason
from .rules.flow import EXTRA, KIND, REF, SESSION, Item
from .sessions import Assignment, TailerSession, WorkerSession
from .usage import SchedulerUsage

#: Items that were never started go back like this: nothing is charged.
HELD = {reason: Ended(Outcome.HELD, reason.value) for reason in Reason}


#: Outcomes at a worker of items that never ran there.
_NEVER_RAN = (Outcome.HELD, Outcome.EXPIRED)
#: The end of a run that has nothing to say.
_PLAIN = Ended(Outcome.SUCCESS)


def ended(outcome: Outcome, reason: Reason, detail: str = "") -> Ended:
    """An end that the scheduler itself gives, with its code and a sentence for people."""
    return Ended(outcome, f"{reason.value}: {detail or SENTENCES[reason]}")


def _of_revoked(end: Ended) -> Ended:
    """The end of a revoked item: no waiting caller asked for its cancellation, so its lease was over."""
    if end.outcome != Outcome.CANCELLED:
        return end
    return Ended(Outcome.LOST, f"{Reason.LEASE_OVER.value}: the lease on it ended while it ran", progress=end.progress)


class Returns:
    """The way back of items that ended. Invariant: every item that was admitted passes here exactly once, unless nobody
    wants to know any more."""

    def __init__(self, limits: Limits, usage: SchedulerUsage) -> None:
        self._limits = limits
        self._usage = usage
        self.recorders: list[Recorder] = []  # of those who follow what comes and ends
        self.speaking: set[TailerSession | WorkerSession] = set()  # sessions with something in their outbox
        self.outcomes: Counter[int] = Counter()
        self.reasons: Counter[str] = Counter()
        self.evidence = Evidence()

    def end(self, items: Iterable[Item], end: Ended) -> None:
        """Ends items in the scheduler, all alike."""
        items = list(items)
        self.evidence.unknown(items)
        count = 0
        for item in items:
            count += 1
            tailer: TailerSession = item[SESSION]
            if tailer.held.end(item[REF] >> INDEX_BITS, 1):
                tailer.ended[item[REF]] = end
                self.speaking.add(tailer)
        if count:
            if self.recorders and end.outcome == Outcome.HELD:
                for recorder in self.recorders:
                    recorder.went_back([item[KIND] for item in items])
            self.outcomes[end.outcome] += count
            self.reasons[end.reason.partition(":")[0]] += count

    def report(self, worker: WorkerSession, outcomes: Outcomes) -> None:
        """Takes ends of items at a worker. Refs that are not open there (any more) are ignored: their end was told."""
        self._note_well(worker, outcomes)
        if outcomes.succeeded:
            worker.succeeded += len(outcomes.succeeded)
            found, items = self.release(worker, outcomes.succeeded)
            if self.evidence.watched or outcomes.ended:
                self.evidence.passed(items)
            for tailer, refs, _ in self._by_tailer(found, items):
                self.outcomes[Outcome.SUCCESS] += len(refs)
                unwanted = self._unwanted(tailer, refs)
                if unwanted:
                    refs = [ref for ref in refs if ref >> INDEX_BITS not in unwanted]
                tailer.succeeded += refs
        if outcomes.ended:
            stopped = worker.revoked & outcomes.ended.keys()
            found, items = self.release(worker, list(outcomes.ended))
            if self._limits.measuring or any(end.used for end in outcomes.ended.values()):
                self._measure(items, [outcomes.ended[ref] for ref in found])
            self.evidence.ended(items, [outcomes.ended[ref] for ref in found])
            for tailer, refs, theirs in self._by_tailer(found, items):
                ends = [outcomes.ended[ref] for ref in theirs]
                if stopped:
                    ends = [_of_revoked(end) if ref in stopped else end for ref, end in zip(theirs, ends, strict=True)]
                self.outcomes.update([end.outcome for end in ends])
                unwanted = self._unwanted(tailer, refs)
                for ref, end in zip(refs, ends, strict=True):
                    if ref >> INDEX_BITS in unwanted:
                        continue
                    if end == _PLAIN:  # it told what it used, and nothing else
                        tailer.succeeded.append(ref)
                    else:
                        tailer.ended[ref] = end

    def _note_well(self, worker: WorkerSession, outcomes: Outcomes) -> None:
        """Tells of successes while functions are frozen; when each began is known only before it is released."""
        if not self.evidence.frozen:
            return
        well = [*outcomes.succeeded, *(ref for ref, end in outcomes.ended.items() if end.outcome == Outcome.SUCCESS)]
        items, flights = worker.open, worker.flights
        self.evidence.went_well((items[ref], flights[ref >> INDEX_BITS].at) for ref in well if ref in items)

    def _measure(self, items: Sequence[Item], ends: Sequence[Ended]) -> None:
        """Corrects limits by the use that runs reported, which is told to nobody else. Items that were handed back
        unstarted used nothing; a run that reported nothing keeps its estimate."""
        for item, end in zip(items, ends, strict=True):
            if end.used:
                used, end.used = self._limits.meant(item[KIND].function, end.used), ()
                self._limits.used(item, used)
                self._usage.used(item[KIND], used)
                for recorder in self.recorders:
                    recorder.used(item[KIND], used)
            elif end.outcome in _NEVER_RAN and self._limits.measuring:
                self._limits.unused([item])

    def release(
        self, worker: WorkerSession, refs: Sequence[int], *, sent: bool = True
    ) -> tuple[Sequence[int], list[Item]]:
        """Takes open items from a worker and frees their slots and limits; use is counted for `sent` ones. Returns the
        refs that were open, and their items."""
        pop = worker.open.pop
        before = len(worker.open)
        found = [pop(ref, None) for ref in refs]
        if before - len(worker.open) == len(refs):
            items: list[Item] = found  # type: ignore[assignment]  # every ref was open
        else:
            known = [(ref, item) for ref, item in zip(refs, found, strict=True) if item is not None]
            refs = [ref for ref, _ in known]
            items = [item for _, item in known]
        if worker.revoked:
            worker.revoked.difference_update(refs)
        if worker.parents and (parents := worker.parents.intersection(refs)):
            worker.parents -= parents
            worker.gone_on.update(dict.fromkeys(parents, self._limits.now))
            theirs = [item for ref, item in zip(refs, items, strict=True) if ref in parents]
            self._recount(worker, parents, theirs, waiting=False)  # counted in again, and out below, once
        counts = Counter([ref >> INDEX_BITS for ref in refs])
        if sent and counts:
            self._usage.ended(worker, counts, refs, items, self._limits.now)
            for recorder in self.recorders:
                recorder.ended(worker, refs, items, self._limits.now)
        for number, count in counts.items():
            flight = worker.flights[number]
            flight.pool.assigned -= count
            flight.open -= count
            if not flight.open:
                del worker.flights[number]
        limits = self._limits
        if limits.any or limits.metering:
            limits.ended(items, sent=sent)
        if limits.measuring and not sent:
            limits.unused(items)
        return refs, items

    def unsend(self, worker: WorkerSession, made: Assignment) -> list[Item]:
        """The items of an assignment that was made and not sent: the worker never heard of them."""
        base, at = made.flight << INDEX_BITS, worker.flights[made.flight].at
        _, items = self.release(worker, range(base, base + len(made.items)), sent=False)
        self._limits.silent([(item, at) for item in items])
        return items

    def lose(self, worker: WorkerSession) -> None:
        """Ends all items of a worker that is gone for good: whether they ran is not known. An item that was lost the
        last time too may have killed the worker whole: it is suspected, like items that ran in a process that died."""
        refs = list(worker.open)
        started = [worker.flights[ref >> INDEX_BITS].at for ref in refs]
        waited = [ref in worker.parents for ref in refs]
        _, items = self.release(worker, refs)
        self._limits.silent(zip(items, started, strict=True))
        lost, suspected = (ended(Outcome.LOST, Reason.WORKER_LOST) for _ in range(2))
        suspected.crashed = True
        suspects: list[Item] = []
        others: list[Item] = []
        for item, was_parent in zip(items, waited, strict=True):
            extra = item[EXTRA]
            may_be_why = extra is not None and (extra.again or extra.alone) and not was_parent
            (suspects if may_be_why else others).append(item)
        self.end(others, lost)
        self.end(suspects, suspected)

    def wait(self, worker: WorkerSession, refs: Iterable[int]) -> None:
        """Frees the slots and limits of items there that wait for other work from now on."""
        fresh = [ref for ref in dict.fromkeys(refs) if ref in worker.open and ref not in worker.parents]
        self._usage.paused(worker, fresh, self._limits.now)
        worker.parents.update(fresh)
        self._recount(worker, fresh, [worker.open[ref] for ref in fresh], waiting=True)

    def go_on(self, worker: WorkerSession, refs: Iterable[int]) -> None:
        """Lets parents go on, at once, beyond every limit if need be."""
        gone_on = [ref for ref in dict.fromkeys(refs) if ref in worker.parents]
        worker.parents.difference_update(gone_on)
        worker.gone_on.update(dict.fromkeys(gone_on, self._limits.now))
        self._recount(worker, gone_on, [worker.open[ref] for ref in gone_on], waiting=False)

    def _recount(self, worker: WorkerSession, refs: Iterable[int], items: Collection[Item], *, waiting: bool) -> None:
        """Takes items of a worker out of the counts, or in again."""
        step = 1 if waiting else -1
        for ref in refs:
            pool = worker.flights[ref >> INDEX_BITS].pool
            pool.parents += step
            pool.assigned -= step
        if self._limits.any or self._limits.metering:
            (self._limits.ended if waiting else self._limits.go_on)(items)

    def _by_tailer(
        self, refs: Sequence[int], items: list[Item]
    ) -> Iterable[tuple[TailerSession, list[int], Sequence[int]]]:
        """Groups ended items: (session, its refs, the worker's refs)."""
        if not items:
            return ()
        tailer: TailerSession = items[0][SESSION]
        mine = [item[REF] for item in items if item[SESSION] is tailer]
        self.speaking.add(tailer)
        if len(mine) == len(items):
            return ((tailer, mine, refs),)
        # Often nearly all are of one session, and a few are retries: only those are looked at one by one.
        groups: defaultdict[TailerSession, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        groups[tailer] = mine, [ref for ref, item in zip(refs, items, strict=True) if item[SESSION] is tailer]
        others = [(ref, item) for ref, item in zip(refs, items, strict=True) if item[SESSION] is not tailer]
        for ref, item in others:
            ours, theirs = groups[item[SESSION]]
            ours.append(item[REF])
            theirs.append(ref)
        self.speaking.update(groups)
        return [(tailer, ours, theirs) for tailer, (ours, theirs) in groups.items()]

    def _unwanted(self, tailer: TailerSession, refs: Sequence[int]) -> Collection[int]:
        """Counts ended items in their flights; returns the flights that the session does not hold any more."""
        end = tailer.held.end
        counts = Counter([ref >> INDEX_BITS for ref in refs])
        return [flight for flight, count in counts.items() if not end(flight, count)]
