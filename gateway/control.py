"""The desk for gates, quotas and the function registry: operators and workers change them, others watch them.

The gateway alone writes the control store. Watchers get everything at once and then again after each change; changes
that come faster than a watcher reads are one to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from ..foundation.certificates import own_fleet
from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..model.errors import Conflict, InvalidRequest, Overloaded, Unavailable
from ..model.function_spec import FunctionSpec
from ..model.gate import MOST_GATES, Gate
from ..model.limits import Quota, QuotaChange, Snapshot
from ..model.name import EXPECTED, NAME_LENGTH, is_name
from ..model.quotas_in_force import InForce
from ..model.units import duration_text
from ..sdk.argument_schema import LONGEST
from ..stores.control.control import Control
from ..stores.control.rules.newer import stands
from ..stores.fleets import refuse_another
from ..stores.spool.spool import RememberedFunctions
from ..wire.convert import function_from_wire, function_to_wire
from ..wire.gateway_messages import snapshot_to_wire
from ..wire.v1 import gateway_pb2 as pb
from .argument_check import is_schema
from .known_functions import KnownFunctions
from .quota_plan import check_quotas, checked_quota, reserved_slots, said_no_more, with_changes
from .rules.confirmations import Confirmations
from .rules.gate_to_resume import no_gate
from .rules.highest import HighestPriorities
from .rules.tokens import KnownTokens
from .snapshot_size import check_functions, check_quotas_fit

#: Bounds: functions of one registration, characters of a gate's reason.
FUNCTIONS_AT_ONCE = 10_000
REASON_LENGTH = 500
#: Who changed what a file said at a start; and how often a change is tried while others change quotas too.
FILE, TRIES = "quotas.yaml", 10
#: Seconds of one wait for a change; and before the store is asked again after it failed.
WAIT = 30.0
PAUSE = 0.5

_LOG = logging.getLogger("tailrace.gateway")


class ControlDesk:
    """A FunctionPort and a LimitPort, which keeps the known functions fresh. `capacity`: slots of which reserves may
    have their parts; 0: it is not declared. With a `spool`, functions are also there: a gateway that starts while its
    store is away takes submissions for those."""

    def __init__(
        self,
        control: Control,
        functions: KnownFunctions,
        clock: Clock,
        watchers: int,
        spool: RememberedFunctions | None,
        duties: Duties,
        capacity: float = 0.0,
        highest: HighestPriorities | None = None,
        tokens: KnownTokens | None = None,
    ) -> None:
        self._highest = HighestPriorities() if highest is None else highest
        self._tokens = tokens or KnownTokens()
        self._capacity = capacity
        self._duties = duties
        self._control = control
        self._functions = functions
        self._clock = clock
        self._free = watchers
        self._spool = spool
        self._remembered: list[FunctionSpec] | None = None
        self._snapshot = self._none = Snapshot()  # none was read yet, and no watcher is told that there is nothing
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._closed = False
        self._declared: Sequence[Quota] = ()  # by quotas.yaml, the newest that are in force or were there at the start
        self._declaring = asyncio.Lock()
        self._confirmations = Confirmations()

    async def start(self, quotas: Sequence[Quota] = ()) -> bool:
        """Applies the configured quotas, reads everything, and follows it from then on. Waits for a store that is away:
        without the known functions nothing could be taken. Where the spool remembers some it goes on with those, and
        answers False: the store was not read yet."""
        self._declared = quotas
        try:
            await self._load()
        except Unavailable as error:
            known = [] if self._spool is None else await self._spool.functions()
            if known:
                _LOG.warning("the store is away; going on with the %d functions it had: %s", len(known), error)
                self._functions.replace(known)
                self._follower = self._duties.begin(self._catch_up(), "gateway: waiting for its store")
                return False
            await self._wait_for_store()
        self._follower = self._duties.begin(self._follow(), "gateway: following the control store")
        return True

    async def _catch_up(self) -> None:
        await self._wait_for_store()
        await self._follow()

    async def _wait_for_store(self) -> None:
        told = False
        while True:
            try:
                await self._load()
                return
            except Unavailable as error:
                if not told:
                    _LOG.warning("the gateway waits for its store: %s", error)
                    told = True
                await asyncio.sleep(PAUSE)

    async def _load(self) -> None:
        for quota in self._declared:
            checked_quota(quota)
        await self._belong()
        async with self._declaring:
            await self._change_quotas(self._declared, FILE, "applied when the gateway started")
        await self.refresh()

    async def _belong(self) -> None:
        """Raises ConfigError where the store is another fleet's."""
        if fleet := own_fleet():
            refuse_another("the store", await self._control.belong(fleet), fleet, "another `--store`")

    async def declare(self, before: Sequence[Quota], now: Sequence[Quota]) -> None:
        """Sets what a file says now, beside the others; a quota that it said before and says no more is removed."""
        for quota in now:
            checked_quota(quota)
        async with self._declaring:
            await self._change_quotas([*said_no_more(before, now), *now], FILE, "the file was changed")
            self._declared = now
        await self.refresh()

    def known(self) -> Snapshot:
        """What stands now, as it last heard."""
        return self._snapshot

    def gates(self) -> Sequence[Gate]:
        """Those that there are, as it last heard."""
        return self._snapshot.gates

    def close(self) -> None:
        """Ends every watch."""
        self._closed = True
        self._changed.set()

    async def stop(self) -> None:
        """Ends every watch and stops following."""
        self.close()
        if self._follower is not None:
            await cancel(self._follower)
            self._follower = None

    async def register_functions(self, request: pb.RegisterFunctionsRequest) -> pb.RegisterFunctionsReply:
        """Keeps what a worker can run, so that submissions are accepted while no worker is there."""
        if len(request.functions) > FUNCTIONS_AT_ONCE:
            raise InvalidRequest(f"{len(request.functions)} functions at once: at most {FUNCTIONS_AT_ONCE} are taken")
        specs: list[FunctionSpec] = []
        for message in request.functions:
            try:
                spec = function_from_wire(message)
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidRequest(
                    f"function {message.name!r:.200}: its description cannot be read: {error}"
                ) from None
            _check_name("function", spec.name)
            specs.append(self._followed(spec))
        check_functions(self._snapshot, specs)
        await self._control.register(specs)
        await self.refresh()
        return pb.RegisterFunctionsReply()

    def _followed(self, spec: FunctionSpec) -> FunctionSpec:
        """With the schema of the version before, and without one that is none."""
        if len(spec.arguments) > LONGEST or (spec.arguments and not is_schema(spec.arguments)):
            spec = replace(spec, arguments="")
        before = self._functions.get(spec.name)
        if before is None or not spec.arguments:
            return replace(spec, former=())
        former = before.former if before.arguments == spec.arguments else (before.arguments,)
        return replace(spec, former=tuple(each for each in former if each))

    async def list_functions(self, request: pb.ListFunctionsRequest) -> pb.ListFunctionsReply:
        """Every function that was ever registered."""
        return pb.ListFunctionsReply(functions=[function_to_wire(spec) for spec in self._functions.all()])

    async def set_gate(self, gate: Gate) -> int:
        """Pauses, drops or resumes what a gate names. Raises InvalidRequest for a resume where none stands."""
        if gate.action == "resume" and not gate.fault():
            await self.refresh()  # another gateway may have set it a moment ago
            if fault := no_gate(gate, self._snapshot.gates):
                raise InvalidRequest(fault)
        return await self.put_gate(gate)

    async def put_gate(self, gate: Gate) -> int:
        """As `set_gate`, but that resuming what is not gated is harmless."""
        if fault := gate.fault():
            raise InvalidRequest(fault)
        _check_texts(("who", gate.who), ("why", gate.why))
        if gate.action != "resume":
            self._check_new(gate)
        version = await self._control.put_gate(replace(gate, since=self._clock.wall()))
        await self.refresh()
        return version

    def _check_new(self, gate: Gate) -> None:
        now = self._clock.wall()
        if gate.function:
            self._functions.check(gate.function)
        if gate.action == "drop" and not (gate.who.strip() and gate.why.strip()):
            raise InvalidRequest('a drop discards workloads for good: say who wants it and why (--why "…")')
        if gate.until and gate.until <= now:
            raise InvalidRequest(f"the end of the gate is {duration_text(now - gate.until)} past: expected a later one")
        if len(self._snapshot.gates) >= MOST_GATES and all(each.key != gate.key for each in self._snapshot.gates):
            raise InvalidRequest(f"there are {MOST_GATES} gates already: resume some (`tailrace gate list`)")

    async def set_quota(self, quota: Quota) -> int:
        """Sets one quota, whole; one that says nothing is removed."""
        if not checked_quota(quota).empty and quota.function:
            self._functions.check(quota.function)
        version = await self._change_quotas([quota], "", "")
        await self.refresh()
        return version

    async def apply_quotas(self, change: QuotaChange) -> int:
        """Replaces all quotas, as one version, with who and why."""
        check_quotas(change.quotas)
        check_quotas_fit(self._snapshot, change.quotas)
        self._check_reserves(change.quotas)
        _check_texts(("who", change.who), ("why", change.why))
        change = replace(change, at=self._clock.wall())
        version = await self._control.put_quotas(change, change.version)
        await self.refresh()
        if not version:
            raise Conflict(
                f"the quotas are of version {self._snapshot.quotas_version}, not {change.version}: somebody changed "
                "them meanwhile; look at `tailrace quota history`, plan again and apply that"
            )
        return version

    async def quota_changes(self) -> list[QuotaChange]:
        """The versions of the quotas that are kept, the newest first."""
        return list(await self._control.quota_changes())

    async def _change_quotas(self, changed: Sequence[Quota], who: str, why: str) -> int:
        """Sets some quotas beside the others; looks again where somebody else did so meanwhile."""
        for _ in range(TRIES):
            known = await self._control.snapshot()
            quotas = with_changes(known.quotas, changed)
            check_quotas_fit(known, quotas)
            self._check_reserves(quotas)
            if sorted(known.quotas, key=lambda each: each.key) == quotas:
                return known.version
            if version := await self._control.put_quotas(
                QuotaChange(0, who, why, self._clock.wall(), tuple(quotas)), known.quotas_version
            ):
                return version
        raise Conflict("others change the quotas all the time: try again")

    def _check_reserves(self, quotas: Sequence[Quota]) -> None:
        """Raises InvalidRequest where more is promised than there is: the declared capacity, since a fleet that is
        scaled to nothing must still take its quotas."""
        promised = reserved_slots(quotas)
        if self._capacity and promised > self._capacity:
            raise InvalidRequest(
                f"the reserves come to {promised:g} slots at every moment, and the capacity is {self._capacity:g} "
                "(gateway.yaml): lower a reserve, or declare what there is"
            )

    async def watch(self, request: pb.WatchRequest) -> AsyncIterator[pb.ControlSnapshot]:
        """Everything now, and again after each change."""
        if not self._free:
            raise Overloaded("too many watch the control store already; close some, or raise `watchers` of the gateway")
        name = request.scheduler
        _check_texts(("scheduler", name))
        self._free -= 1
        if name:
            self._confirmations.watches(name)
        try:
            sent = self._none
            while not self._closed:
                changed = self._changed
                if self._snapshot is not sent:
                    sent = self._snapshot
                    yield snapshot_to_wire(sent)
                else:
                    await changed.wait()
            raise Unavailable("the gateway is shutting down")
        finally:
            self._free += 1
            if name:
                self._confirmations.ended(name, self._clock.wall())

    async def confirm(self, request: pb.ConfirmRequest) -> pb.ConfirmReply:
        """A scheduler that watches has these quotas in force."""
        if not self._confirmations.confirmed(request.scheduler, request.quotas_version, self._clock.wall()):
            raise InvalidRequest(f"no scheduler {request.scheduler!r:.100} watches here: it confirms what it watches")
        return pb.ConfirmReply()

    async def limits_in_force(self) -> list[InForce]:
        """What each scheduler has said of itself, by name."""
        return self._confirmations.all(self._clock.wall())

    async def refresh(self) -> None:
        """After a write, so that whoever made it finds it in whatever they ask next."""
        before = self._snapshot.version
        self._take(await self._control.snapshot(), before)
        await self._remember()

    async def _remember(self) -> None:
        """Keeps the functions for a start without the store. The spool's own disk may be full: then the next change."""
        if self._spool is None or self._remembered == self._snapshot.functions:
            return
        functions = self._snapshot.functions
        try:
            await self._spool.remember(functions)
        except Unavailable as error:
            _LOG.warning("the spool does not take the function registry: %s", error)
        else:
            self._remembered = functions

    def _take(self, snapshot: Snapshot, before: int) -> None:
        """`before`: the version that was known when it began to read. What the follower brings may be overtaken."""
        if not stands(snapshot, before, self._snapshot):
            return
        self._snapshot = snapshot
        self._functions.replace(snapshot.functions)
        self._highest.replace(snapshot.quotas)
        self._tokens.replace(snapshot.tokens)
        if not self._closed:
            self._changed.set()
            self._changed = asyncio.Event()

    async def _follow(self) -> None:
        away = False
        while True:
            try:
                if self._until_end() <= 0:
                    await self._control.end_gates()
                before = self._snapshot.version
                snapshot = await self._control.wait(before, min(WAIT, max(PAUSE, self._until_end())))
                away = False
            except Unavailable as error:
                if not away:
                    _LOG.warning("the control store cannot be read: %s; trying again", error)
                away = True
                await asyncio.sleep(PAUSE)
                continue
            except Exception:
                _LOG.exception("reading the control store failed; trying again")
                await asyncio.sleep(PAUSE)
                continue
            if snapshot is not None:
                self._take(snapshot, before)
                await self._remember()

    def _until_end(self) -> float:
        """Seconds until the next gate ends by itself. The store judges that by its own clock: any gateway may ask."""
        ends = [gate.until for gate in self._snapshot.gates if gate.until]
        return min(ends) - self._clock.wall() if ends else WAIT


def _check_texts(*texts: tuple[str, str]) -> None:
    for what, text in texts:
        if len(text) > REASON_LENGTH:
            raise InvalidRequest(f"{what} has {len(text)} characters: at most {REASON_LENGTH} are taken")


def _check_name(what: str, name: str) -> None:
    if not is_name(name):
        raise InvalidRequest(f"{what} {name[:NAME_LENGTH]!r} is not a name: {EXPECTED}")
