"""Adoption: running items of a dead owner become the next owner's, without a pause and without a second start (L12).

A tailer that wants a row of ownership asks. Items that wait under it go back to their session, and items that run are
moved to a limbo that nobody renews or hears. The tailer that then shows a newer version of the row empties it: the
taker gets all of it, or the owner, if it lives after all, gets its own back. Rare, so it looks everywhere, like
recall.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count

from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, INDEX_MASK, Owned
from .recall import Recall
from .returns import HELD, Returns
from .rules.adoption import AdoptedRow, forgettable, plausible
from .rules.explain import Reason
from .rules.flow import REF, SESSION, Item
from .rules.leases import FlightLease
from .sessions import AdoptedFlight, Adoption, RowKey, TailerSession, WorkerSession

#: Adopted flights are numbered from here on, above all that a session counts itself, and never twice.
FIRST_ADOPTED = 1 << 48
#: Rows known at once; pushes and questions about further ones are refused. Of them one session shows no more than a
#: sixteenth, and those that nobody showed, but somebody asked about, are no more than a thousand.
ROWS = 1 << 16
SESSION_ROWS = ROWS >> 4
UNSHOWN_ROWS = 1 << 10

_OWNER_IS_HERE = "its owner is connected to this scheduler"
_CHANGED = "a newer version of the row was shown"
_ENDING = "items that run under it are being stopped"
_TOO_MANY = "this scheduler knows too many rows of ownership"
_MADE_UP = "no row can have that version yet, by this scheduler's clock"

#: A flight of a session.
Of = tuple[TailerSession, int]


class KnownRow:
    """A row and what hangs on it. Invariant: a limbo's flights have numbers that no session gave."""

    def __init__(self) -> None:
        self.row = AdoptedRow()
        self.owners: set[TailerSession] = set()  # the sessions in which its owner showed it
        self.limbo: TailerSession | None = None
        self.kept_until = 0.0  # for somebody who asked beside any session, and may come in one
        self.origins: dict[int, Of] = {}  # flight in limbo → where it came from
        self.told: set[TailerSession] = set()  # who was told what is in limbo
        self.idle_since: float | None = None  # nobody was there for it; None: somebody, or it was not looked at


class Adoptions:
    """The rows and limbos that a scheduler knows. Invariants: every item that runs is of exactly one session or limbo;
    `_unshown` names the rows that nobody showed. `keep`: the lease of a source, by which rows are forgotten."""

    def __init__(
        self,
        workers: dict[str, WorkerSession],
        tailers: dict[str, TailerSession],
        recall: Recall,
        returns: Returns,
        keep: float,
    ) -> None:
        self._keep = keep
        self._unshown: set[RowKey] = set()
        self._workers = workers
        self._tailers = tailers
        self._recall = recall
        self._returns = returns
        self._rows: dict[RowKey, KnownRow] = {}
        self._numbers = count(FIRST_ADOPTED)

    def allows(self, tailer: TailerSession, owned: Owned) -> bool:
        """Whether a push under this row counts. If not, the session is told which version it must exceed."""
        key = (owned.source, owned.partition)
        known = self._rows.get(key)
        if known is not None and known.row.allows(owned.epoch):
            tailer.rows.add(key)
            return True
        tailer.barred[key] = 0 if known is None else max(known.row.version, known.row.asked)
        self._returns.speaking.add(tailer)
        return False

    def show(self, tailer: TailerSession, key: RowKey, epoch: int, version: int) -> None:
        """Notes the row that an owner shows; items that wait in limbo go to their owner."""
        known = self._known_to_show(tailer, key)
        if known is None:
            return
        former, known.idle_since = known.row.epoch, None
        if not known.row.show(epoch, version):
            if known.row.version and known.row.epoch == epoch:
                known.owners.add(tailer)  # it may have two sessions here, its own and a side
                if known.row.barred:
                    tailer.barred[key] = known.row.asked
                    self._returns.speaking.add(tailer)
            return
        self._rows[key] = known
        self._unshown.discard(key)
        same = known.owners if epoch == former else ()
        known.owners = {tailer, *(each for each in same if self._alive(each))}
        tailer.rows.add(key)
        if known.row.barred:
            tailer.barred[key] = known.row.asked
            self._returns.speaking.add(tailer)
        elif known.limbo is not None:
            self._empty(known, known.limbo, tailer, epoch)

    def ask(self, tailer: TailerSession, key: RowKey, epoch: int, version: int, wall: float) -> None:
        """Answers a tailer that wants the row it read; the answer goes into its outbox."""
        tailer.adoptions.append(self._answer(tailer, key, epoch, version, wall))
        self._returns.speaking.add(tailer)

    def set_aside(self, key: RowKey, epoch: int, version: int, until: float, wall: float) -> Adoption:
        """Answers as `ask` does, outside any session, a tailer whose session is with another scheduler. Running items
        stay in limbo until their leases are over, and their outcomes until `until` (monotonic) at least, unless the
        owner shows a newer version of the row. The tailer that took the row may ask again, in a session."""
        answer = self._answer(None, key, epoch, version, wall)
        if not answer.refused:
            self._rows[key].kept_until = until
        return answer

    def tick(self, now: float) -> None:
        """Ends leases in limbo like all others. Forgets each limbo that nobody can empty any more, and rows that nobody
        showed or, when many are known, that nobody comes for."""
        crowded = len(self._rows) > ROWS // 2
        gone = []
        for key, known in self._rows.items():
            limbo = known.limbo
            if limbo is None:
                if (crowded or not known.row.version) and self._idle_for_long(known, now):
                    gone.append(key)
                continue
            self._recall.lapse(limbo, now)
            known.told = {tailer for tailer in known.told if self._alive(tailer)}
            if not known.told and not limbo.held.flights and now >= known.kept_until:
                known.limbo = None
                known.origins.clear()
        for key in gone:
            del self._rows[key]
            self._unshown.discard(key)

    def _idle_for_long(self, known: KnownRow, now: float) -> bool:
        """Whether a row had no session for so long that it may be forgotten."""
        if any(self._alive(each) for each in known.owners):
            known.idle_since = None
        elif known.idle_since is None:
            known.idle_since = now
        else:
            return forgettable(now - known.idle_since, self._keep)
        return False

    # ---- asking

    def _answer(self, tailer: TailerSession | None, key: RowKey, epoch: int, version: int, wall: float) -> Adoption:
        known = self._rows.get(key)
        if not plausible(version, 0 if known is None else known.row.version, wall):
            return Adoption(key, version, _MADE_UP)
        known = known or self._known_to_ask(key)
        if known is None:
            return Adoption(key, version, _TOO_MANY)
        known.idle_since = None
        if any(owner is not tailer and owner.connected for owner in known.owners):
            return Adoption(key, version, _OWNER_IS_HERE)
        for session in self._tailers.values():
            if key in session.rows:
                _take_back(session)
        flights = self._flights(known, key, epoch)
        if self._ending(key, flights):
            return Adoption(key, version, _ENDING)
        if not known.row.ask(version):
            return Adoption(key, version, _CHANGED)
        self._collect(known, key, flights)
        if tailer is not None:
            known.told.add(tailer)
        return self._told(key, version, known)

    def _flights(self, known: KnownRow, key: RowKey, epoch: int) -> dict[Of, FlightLease]:
        """Every flight under a row up to an epoch."""
        sessions = {item[SESSION] for worker in self._workers.values() for item in worker.open.values()}
        sessions.update(self._tailers.values())
        if known.limbo is not None:
            sessions.add(known.limbo)
        return {
            (session, number): lease
            for session in sessions
            for number, lease in session.held.known().items()
            if lease.owned is not None and lease.owned[:2] == key and lease.owned.epoch <= epoch
        }

    def _ending(self, key: RowKey, flights: dict[Of, FlightLease]) -> bool:
        """Whether an item of these flights was told to stop where it runs, so that nobody can adopt it. A flight that
        is not held any more does not say under which row it was pushed."""
        for worker in self._workers.values():
            for ref in worker.revoked:
                item = worker.open[ref]
                session: TailerSession = item[SESSION]
                flight = item[REF] >> INDEX_BITS
                if (session, flight) in flights or (key in session.rows and flight not in session.held.flights):
                    return True
        return False

    def _collect(self, known: KnownRow, key: RowKey, flights: dict[Of, FlightLease]) -> None:
        """Sends waiting items back, and moves running items and untold outcomes into limbo."""
        limbo = known.limbo
        if limbo is None:
            limbo = known.limbo = TailerSession("", "", 0, 0.0)
            limbo.rows.add(key)
        wanted = {of: lease for of, lease in flights.items() if of[0] is not limbo}

        def named(item: Item) -> bool:
            return (item[SESSION], item[REF] >> INDEX_BITS) in wanted

        for worker in self._workers.values():
            if any(named(item) for made in worker.assignments for item in made.items):
                self._recall.take_back(worker)
        self._returns.end(self._recall.remove(named), HELD[Reason.NOT_OWNER])
        moves: dict[Of, Of] = {of: (limbo, next(self._numbers)) for of in wanted}
        self._move(moves, never_started=False)
        for of, (_, number) in moves.items():
            if number in limbo.held.known():
                known.origins[number] = of

    def _told(self, key: RowKey, version: int, known: KnownRow) -> Adoption:
        """The answer that names all items in limbo."""
        limbo = known.limbo
        assert limbo is not None
        refs = [
            item[REF] for worker in self._workers.values() for item in worker.open.values() if item[SESSION] is limbo
        ]
        indexes: defaultdict[int, list[int]] = defaultdict(list)
        for ref in [*refs, *limbo.succeeded, *limbo.ended]:
            indexes[ref >> INDEX_BITS].append(ref & INDEX_MASK)
        flights = []
        for number, lease in limbo.held.known().items():
            owned = lease.owned
            assert owned is not None
            mine = sorted(indexes[number])
            for part, those in owned.by_part(mine):
                positions = [owned.positions[index] for index in those]
                flights.append(AdoptedFlight(number, lease.fence, part, those, positions))
        return Adoption(key, version, "", limbo.held.ends(), flights)

    # ---- showing

    def _empty(self, known: KnownRow, limbo: TailerSession, tailer: TailerSession, epoch: int) -> None:
        """Gives the items in limbo to the taker that asked for them, or back to the owner that had them; nobody else
        wants them.

        An item of the owner that shows itself keeps its lease as it was: nothing was renewed in between.
        """
        moves: dict[Of, Of] = {}
        for number, lease in limbo.held.known().items():
            assert lease.owned is not None
            origin = known.origins.get(number)
            if lease.owned.epoch == epoch:
                if origin is not None and self._alive(origin[0]):
                    moves[limbo, number] = origin
            elif tailer in known.told:
                moves[limbo, number] = (tailer, number)
                lease.owned = lease.owned._replace(epoch=epoch)
        self._move(moves, never_started=True)
        self._recall.revoke(lambda item: item[SESSION] is limbo)
        limbo.held.flights.clear()
        known.limbo = None
        known.origins.clear()
        known.told.clear()

    # ---- moving

    def _move(self, moves: dict[Of, Of], *, never_started: bool) -> None:
        """Gives flights to other sessions: leases, running items, and outcomes that were not told, with those of items
        that were handed back unstarted if so asked. A flight of which nothing is left is forgotten."""
        renumber = _renumbering(moves)
        for worker in self._workers.values():
            touched = set()
            for ref, item in worker.open.items():
                to = renumber(item[SESSION], item[REF])
                if to is not None:
                    worker.open[ref] = (*to, *item[2:])
                    touched.add(ref >> INDEX_BITS)
            if touched:
                _see_sessions(worker, touched)
        told: set[Of] = set()
        for session in {session for session, _ in moves}:
            told |= self._move_outcomes(session, renumber, never_started)
        for (session, number), (heir, new) in moves.items():
            lease = session.held.known()[number]
            session.held.forget(number)
            if lease.open or (heir, new) in told:
                heir.held.put(new, lease)

    def _move_outcomes(
        self, session: TailerSession, renumber: Callable[[TailerSession, int], Of | None], never_started: bool
    ) -> set[Of]:
        """Moves outcomes that wait to be told to the flights' new sessions. Returns the flights that they are of."""
        told = set()
        kept = []
        for ref in session.succeeded:
            to = renumber(session, ref)
            if to is None:
                kept.append(ref)
            else:
                to[0].succeeded.append(to[1])
                told.add((to[0], to[1] >> INDEX_BITS))
        session.succeeded = kept
        for ref, end in list(session.ended.items()):
            to = renumber(session, ref)
            if to is not None and (never_started or end.outcome != Outcome.HELD):
                del session.ended[ref]
                to[0].ended[to[1]] = end
                told.add((to[0], to[1] >> INDEX_BITS))
        self._returns.speaking.update(to for to, _ in told)
        return told

    def _known_to_show(self, tailer: TailerSession, key: RowKey) -> KnownRow | None:
        """The row that an owner shows, as it is known here; a new one is kept once it was shown. None: there is no room
        for another."""
        known = self._rows.get(key)
        if known is None and len(self._rows) < ROWS and len(tailer.rows) < SESSION_ROWS:
            return KnownRow()
        return known

    def _known_to_ask(self, key: RowKey) -> KnownRow | None:
        if len(self._rows) >= ROWS or len(self._unshown) >= UNSHOWN_ROWS:
            return None
        self._unshown.add(key)
        known = self._rows[key] = KnownRow()
        return known

    def _alive(self, tailer: TailerSession) -> bool:
        return self._tailers.get(tailer.session) is tailer


def _take_back(tailer: TailerSession) -> None:
    """Puts into a session's outbox again what it may not have heard. An item that was handed back unstarted is not
    among it: whoever has the row hands it out."""
    for said in tailer.unheard.take_back():
        tailer.succeeded += said.outcomes.succeeded
        tailer.ended.update({ref: end for ref, end in said.outcomes.ended.items() if end.outcome != Outcome.HELD})
        tailer.held.ended.update(said.flights)


def _renumbering(moves: dict[Of, Of]) -> Callable[[TailerSession, int], Of | None]:
    """Session and ref → the session and ref that the item has from now on; None: it stays."""

    def renumber(session: TailerSession, ref: int) -> Of | None:
        to = moves.get((session, ref >> INDEX_BITS))
        return None if to is None else (to[0], to[1] << INDEX_BITS | ref & INDEX_MASK)

    return renumber


def _see_sessions(worker: WorkerSession, flights: Iterable[int]) -> None:
    """Notes anew whose items some of a worker's flights hold."""
    sessions: defaultdict[int, dict[TailerSession, None]] = defaultdict(dict)
    for ref, item in worker.open.items():
        sessions[ref >> INDEX_BITS][item[SESSION]] = None
    for number in flights:
        worker.flights[number].tailers = tuple(sessions[number])
