"""Ends of items, as an engine tells them: each that came in by exactly one row, none while it runs, none that starts
after it, and as its run deserved."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.outcome import Outcome
from ...runtime.rules.attempt import Stop
from .journal import Journal
from .plan import Deed

_BY_KIND = {"ok": "ok", "fatal": "fatal", "later": "retry", "throttled": "throttled"}
_BY_STOP = {Stop.NONE: "retry", Stop.TIMEOUT: "retry", Stop.CANCELLED: "cancelled"}
#: Ends of items that never ran.
_UNSTARTED = ("held", "cancelled", "expired")
_WAITS, _RUNS = "waits", "runs"


def deserved(deed: Deed | None, stop: Stop) -> str:
    """The outcome that a run deserves that did all of its deed (None: it was stopped before) after it was told to stop.
    An outcome that a function asks for on purpose counts even then."""
    known = None if deed is None else _BY_KIND.get(deed.kind)
    return known or _BY_STOP.get(stop, "lost")


class Ends:
    """Check of the ends of items in one process. Invariant: `inside` has each item that came in and was not told to
    have ended, with its state or the end of its function."""

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal = journal
        self._name = name
        self.inside: dict[int, str] = {}
        self._ids: dict[int, str] = {}

    def _wrong(self, what: str) -> None:
        self._journal.wrong(f"ends: in {self._name} {what}")

    def admitted(self, first: int, ids: Sequence[str]) -> None:
        """Notes items that came in, under keys from `first` on."""
        for key, id in enumerate(ids, first):
            self.inside[key], self._ids[key] = _WAITS, id

    def begins(self, key: int, id: str) -> None:
        """Checks that an item that starts has waited."""
        if self.inside.get(key) != _WAITS:
            self._wrong(f"{id} starts, which {self.inside.get(key, 'had been told to be over')}")
        self.inside[key] = _RUNS

    def did(self, key: int, how: str) -> None:
        """Notes the end of an item's function."""
        self.inside[key] = how

    def told(self, key: int, outcome: Outcome, *, misfit: bool = False) -> None:
        """Checks an outcome that the engine tells against the end of the function. `misfit`: it did not take the
        item's arguments, so it never ran."""
        how = "ok" if outcome is Outcome.SUCCESS else outcome.name.lower()
        did = self.inside.pop(key, "")
        if not did:
            self._wrong(f"an item ends by {how} that was not there any more")
        elif did == _RUNS:
            self._wrong(f"an item ends by {how} that runs")
        elif misfit and did == _WAITS:
            self._journal.refused(self._ids[key], self._name)
        elif how not in (_UNSTARTED if did == _WAITS else (did,)):
            self._wrong(f"an item ends by {how} that {did}")
