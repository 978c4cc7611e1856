"""The desk for tailers and their sources: pauses, resumes and seeks; audits, and ranges that were passed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from ..model.audit import Audit
from ..model.did_you_mean import nearest, question
from ..model.drop import DropRow
from ..model.errors import InvalidRequest
from ..model.gate import Gate
from ..model.seek import END, LAST_POSITION, START, ForgetTailer, Move, Seek
from ..stores.drops.drops import Drops
from ..stores.tailer_states import TailerStates
from .members import OtherMembers

#: Most ranges of drops in one answer.
MOST_DROPS = 1000


class TailerControl(Protocol):
    """The tailers beside a gateway.

    known  the names of the tailers here
    check  raises InvalidRequest for a replay, which has commands of its own
    heed   applies the changed gate of a tailer before it returns; raises InvalidRequest for an unknown tailer
    seek   moves a checkpoint; raises InvalidRequest for an unknown tailer
    """

    def known(self) -> list[str]: ...

    def check(self, name: str) -> None: ...

    async def heed(self, name: str) -> None: ...

    async def seek(self, seek: Seek) -> list[Move]: ...


class TailerGates(Protocol):
    """The gates of sources. Both methods return the version of the control store.

    set_gate  sets a gate, or removes it; raises InvalidRequest where there is none to remove
    put_gate  like `set_gate`, but removing a gate that does not exist is harmless
    """

    async def set_gate(self, gate: Gate) -> int: ...

    async def put_gate(self, gate: Gate) -> int: ...


#: Audits the tailer of this name: one partition or all (None), a range of positions or all (None).
Audits = Callable[[str, str | None, tuple[int, int] | None], Awaitable[list[Audit]]]


async def no_audits(tailer: str, partition: str | None, span: tuple[int, int] | None) -> list[Audit]:
    """Refuses an audit, for a gateway without tailers. Raises InvalidRequest."""
    raise InvalidRequest(f"this gateway has no tailers beside it, so it cannot audit {tailer!r}")


class TailerDesk:
    """Answers calls about tailers beside this gateway and in other processes (a TailerPort)."""

    def __init__(
        self,
        tailers: TailerControl | None,
        audits: Audits,
        drops: Drops | None,
        gates: TailerGates,
        others: OtherMembers,
        states: TailerStates | None = None,
    ) -> None:
        self._others, self._states = others, states
        self._gates = gates
        self._tailers = tailers
        self._audits = audits
        self._drops = drops

    async def _here(self, name: str) -> TailerControl | None:
        """The tailers beside this gateway, unless the tailer of this name runs in another process (then None). They
        also answer for a tailer that runs nowhere."""
        if self._tailers is None or (name not in self._tailers.known() and await self._others.places(name)):
            return None
        return self._tailers

    async def pause_tailer(self, gate: Gate) -> str:
        """Pauses or resumes a tailer by a gate of its source, which is durable and reaches the tailer wherever it runs.
        A resume also starts a failed tailer again, so it is refused only where there is neither tailer nor gate."""
        if self._tailers is not None:
            self._tailers.check(gate.source)
        here = [] if self._tailers is None else self._tailers.known()
        others = [] if gate.source in here else await self._others.tailers()
        places = [each.process for each in others if each.name == gate.source]
        asked = question(nearest(gate.source, [*here, *(each.name for each in others)]))
        if gate.source in here or places or gate.action != "resume":
            await self._gates.put_gate(gate)
        else:
            try:
                await self._gates.set_gate(gate)
            except InvalidRequest as error:
                raise InvalidRequest(f"no tailer {gate.source!r} runs now; {asked or error}") from None
        if self._tailers is not None and gate.source in here:
            await self._tailers.heed(gate.source)
            return ""
        if places:
            return f"it runs at {', '.join(places)}, and hears of it within a second"
        later = "reads on" if gate.action == "resume" else "reads nothing"
        near = f"{asked} " if asked else ""
        return f"no tailer {gate.source!r} runs now; {near}One of that name {later} once it starts"

    async def seek_tailer(self, seek: Seek) -> list[Move]:
        """Moves a checkpoint, or shows the moves (a dry run). A seek passes items, so it needs a reason."""
        if (seek.position is None and not seek.edge and not seek.time) or seek.edge not in ("", START, END):
            raise InvalidRequest(
                f"seek {seek.tailer!r}: no such target: expected a position, a time, {START!r} or {END!r}"
            )
        if seek.position is not None and seek.position > LAST_POSITION:
            raise InvalidRequest(
                f"seek {seek.tailer!r}: its target is {seek.position}: expected a position of at most {LAST_POSITION}"
            )
        if not seek.dry_run and not seek.why.strip():
            raise InvalidRequest(
                "a seek passes items without running them: give the reason (--why), or look with --dry-run"
            )
        here = await self._here(seek.tailer)
        return await (self._others if here is None else here).seek(seek)

    async def forget_tailer(self, order: ForgetTailer) -> str:
        """Forgets all that rests here of a tailer, and returns the stream of the log that it read; empty: it read
        something else. One that runs would be known again at once, so it is refused; so is a replay."""
        if self._states is None:
            raise InvalidRequest("this gateway does not know the state of tailers: ask the one of the node")
        if self._tailers is not None:
            self._tailers.check(order.tailer)
        here = [] if self._tailers is None else self._tailers.known()
        where = ["beside this gateway"] if order.tailer in here else await self._others.places(order.tailer)
        if where:
            raise InvalidRequest(
                f"the tailer {order.tailer!r} runs {', '.join(where)}: take its file away there, or stop that process, "
                "and forget it then. What it did not settle may go at once"
            )
        return await self._states.forget(order.tailer)

    async def audit(
        self, tailer: str, partition: str | None = None, span: tuple[int, int] | None = None
    ) -> list[Audit]:
        """The audit of a tailer's source, by partition."""
        here = await self._here(tailer)
        found = await (self._others.audits if here is None else self._audits)(tailer, partition, span)
        return [replace(each, passed=None) for each in found]

    async def drops(self, tailer: str = "", limit: int = 100, skip: int = 0) -> list[DropRow]:
        """Ranges that were passed without being run, of one tailer or all, by tailer, partition and position."""
        if self._drops is None:
            raise InvalidRequest("this gateway has no store of drops")
        return await self._drops.list(tailer, min(limit, MOST_DROPS) if limit > 0 else MOST_DROPS, max(0, skip))
