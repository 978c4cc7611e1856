"""The desk for gates, quotas and the function registry: operators and workers change them, others watch them.

Only gateways write the control store. Watchers get everything at once and then again after each change; changes that
come faster than a watcher reads reach it as one.
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
from ..model.name import EXPECTED, NAME_LENGTH, check_not_reserved, is_name
from ..model.quotas_in_force import InForce
from ..model.token_calls import need_to_limit
from ..model.units import duration_text
from ..sdk.argument_schema import LONGEST
from ..stores.control.control import Control
from ..stores.control.rules.valid_snapshot import is_valid
from ..stores.fleets import refuse_another
from ..stores.spool.spool import RememberedFunctions
from ..stores.trusted_time import TrustedTime
from ..wire.callers import rights_of_caller
from ..wire.convert import function_from_wire, function_to_wire
from ..wire.gateway_messages import snapshot_to_wire
from ..wire.v1 import gateway_pb2 as pb
from .argument_check import is_schema
from .known_functions import KnownFunctions
from .quota_plan import check_quotas, checked_quota, removals, reserved_slots, with_changes
from .rules.confirmations import Confirmations
from .rules.gate_ends import GateEnds
from .rules.highest_priority import HighestPriorities
from .rules.lifting import no_gate, noted, too_narrow
from .rules.tokens import KnownTokens
from .snapshot_size import check_functions, check_quotas_fit

#: Bounds: functions of one registration, characters of a gate's reason.
FUNCTIONS_AT_ONCE = 10_000
REASON_LENGTH = 500
#: The author of changes that quotas.yaml makes; and tries of a change while others change quotas too.
FILE, TRIES = "quotas.yaml", 10
#: Seconds of one wait for a change, and of the pause after the store failed.
WAIT = 30.0
PAUSE = 0.5

_LOG = logging.getLogger("tailrace.gateway")


class ControlDesk:
    """Answers calls about functions, gates and quotas (a FunctionPort and a LimitPort), and keeps the known functions
    fresh. `capacity`: slots that reserves may not exceed together; 0: not declared. A `spool` keeps a copy of the
    functions, so that a gateway that starts while its store is away takes submissions for them."""

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
        trusted: TrustedTime | None = None,
    ) -> None:
        self._ends, self._trusted = GateEnds(), trusted or TrustedTime(clock)
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
        self._snapshot = self._none = Snapshot()  # none was read yet; watchers are not told of this empty one
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._closed = False
        self._declared: Sequence[Quota] = ()  # by quotas.yaml, the newest that are in force or were there at the start
        self._declaring = asyncio.Lock()
        self._confirmations = Confirmations()

    async def start(self, quotas: Sequence[Quota] = ()) -> bool:
        """Applies the configured quotas, reads the control store, and follows it from then on. Waits for a store that
        is away, since without known functions nothing could be accepted. Where the spool remembers functions it goes on
        with them, and returns False: the store was not read yet."""
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
        """Raises ConfigError where the store belongs to another fleet."""
        if fleet := own_fleet():
            refuse_another("the store", await self._control.belong(fleet), fleet, "another `--store`")

    async def declare(self, before: Sequence[Quota], now: Sequence[Quota]) -> None:
        """Applies the quotas of a changed file, beside all others; a quota that the file no longer has is removed."""
        for quota in now:
            checked_quota(quota)
        async with self._declaring:
            await self._change_quotas([*removals(before, now), *now], FILE, "the file was changed")
            self._declared = now
        await self.refresh()

    def known(self) -> Snapshot:
        """The content of the control store, as it was last read."""
        return self._snapshot

    def gates(self) -> Sequence[Gate]:
        """The gates, as they were last read."""
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
        """Stores the functions of a worker, so that submissions are accepted while no worker runs."""
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
            check_not_reserved("function", spec.name)
            specs.append(self._followed(spec))
        check_functions(self._snapshot, specs)
        await self._control.register(specs)
        await self.refresh()
        return pb.RegisterFunctionsReply()

    def _followed(self, spec: FunctionSpec) -> FunctionSpec:
        """A spec that also has the schema of the version before (`former`), and no schema that cannot be used."""
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
        """Sets a gate, or removes it (`resume`). Raises InvalidRequest for a resume where there is no gate."""
        if gate.action == "resume" and not gate.fault():
            await self.refresh()  # another gateway may have set it a moment ago
            if fault := no_gate(gate, self._snapshot.gates):
                raise InvalidRequest(fault)
        return await self.put_gate(gate)

    async def _allow(self, gate: Gate) -> Gate:
        """The gate with the right by which its caller sets it. Raises InvalidRequest where a wider one set the gate
        that stands there."""
        rights = rights_of_caller()
        if rights is not None:
            await self.refresh()  # another gateway may have set it a moment ago
            before = next((each for each in self._snapshot.gates if each.key == gate.key), None)
            if before and (fault := too_narrow(f"the gate before {gate.what}", before.right, rights, before.who)):
                raise InvalidRequest(fault)
        return replace(gate, right=noted(rights, need_to_limit("operate", gate)))

    async def put_gate(self, gate: Gate) -> int:
        """Sets or removes a gate, like `set_gate`; removing a gate that does not exist is harmless."""
        if fault := gate.fault():
            raise InvalidRequest(fault)
        _check_texts(("who", gate.who), ("why", gate.why))
        if gate.action != "resume":
            self._check_new(gate)
        gate = await self._allow(gate)
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
        """Sets one quota, whole; a quota without limits is removed."""
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
                f"the quotas are at version {self._snapshot.quotas_version}, not {change.version}: somebody changed "
                "them meanwhile; look at `tailrace quota history`, plan again and apply that plan"
            )
        return version

    async def quota_changes(self) -> list[QuotaChange]:
        """The versions of the quotas that are kept, the newest first."""
        return list(await self._control.quota_changes())

    async def _change_quotas(self, changed: Sequence[Quota], who: str, why: str) -> int:
        """Sets some quotas beside the others; tries again where another change came between."""
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
        raise Conflict(f"the quotas were changed by others during each of {TRIES} tries: try again")

    def _check_reserves(self, quotas: Sequence[Quota]) -> None:
        """Raises InvalidRequest where reserves exceed the declared capacity. Running slots do not count, since a fleet
        that is scaled to nothing must still take its quotas."""
        promised = reserved_slots(quotas)
        if self._capacity and promised > self._capacity:
            raise InvalidRequest(
                f"the reserves come to {promised:g} slots at every moment, and the capacity is {self._capacity:g} "
                "(gateway.yaml): lower a reserve, or raise `capacity`"
            )

    async def watch(self, request: pb.WatchRequest) -> AsyncIterator[pb.ControlSnapshot]:
        """Yields the content of the control store now, and again after each change."""
        if not self._free:
            raise Overloaded("all watches of the control store are in use: end one, or raise the gateway's `watchers`")
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
        """Notes that a scheduler that watches has these quotas in force."""
        if not self._confirmations.confirmed(request.scheduler, request.quotas_version, self._clock.wall()):
            raise InvalidRequest(
                f"no scheduler {request.scheduler!r:.100} watches this gateway: confirm to the gateway that it watches"
            )
        return pb.ConfirmReply()

    async def limits_in_force(self) -> list[InForce]:
        """The quotas that each scheduler has in force, by its name."""
        return self._confirmations.all(self._clock.wall())

    async def refresh(self) -> None:
        """Reads the control store again; called after a write, so that its author finds it in the next answer."""
        before = self._snapshot.version
        self._take(await self._control.snapshot(), before)
        await self._remember()

    async def _remember(self) -> None:
        """Stores the functions in the spool, for a start without the store; if its disk is full, at the next change."""
        if self._spool is None or self._remembered == self._snapshot.functions:
            return
        functions = self._snapshot.functions
        try:
            await self._spool.remember(functions)
        except Unavailable as error:
            _LOG.warning("the function registry cannot be stored in the spool: %s", error)
        else:
            self._remembered = functions

    def _take(self, snapshot: Snapshot, before: int) -> None:
        """Takes over a snapshot, unless a newer one came meanwhile. `before`: the version when its read began."""
        if not is_valid(snapshot, before, self._snapshot):
            return
        self._snapshot = snapshot
        self._functions.replace(snapshot.functions)
        self._highest.replace(snapshot.quotas)
        self._tokens.replace(snapshot.tokens)
        self._ends.see(snapshot.gates, self._clock.monotonic())
        if not self._closed:
            self._changed.set()
            self._changed = asyncio.Event()

    async def _end(self, wall: float, trusted: float, now: float) -> None:
        """Ends the gates and tokens whose time is over. Tokens end for good: the clock may be set back before the next
        start."""
        try:
            if over := self._ends.over(self._snapshot.gates, wall, trusted, now):
                await self._control.end_gates(over)
            for token in self._tokens.over(wall):
                await self._control.remove_token(token.name)
        except InvalidRequest as error:
            if self._duties.ails("ending gates", str(error), now):
                _LOG.warning(
                    "gates and tokens do not end by themselves: %s (a store server of another version?)", error
                )
        else:
            self._duties.well("ending gates")

    async def _follow(self) -> None:
        away = False
        while True:
            try:
                times = self._clock.wall(), self._trusted.seconds(), self._clock.monotonic()
                await self._end(*times)
                before, left = self._snapshot.version, self._ends.wait(self._snapshot.gates, *times)
                snapshot = await self._control.wait(before, WAIT if left is None else min(WAIT, max(PAUSE, left)))
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


def _check_texts(*texts: tuple[str, str]) -> None:
    for what, text in texts:
        if len(text) > REASON_LENGTH:
            raise InvalidRequest(f"{what} has {len(text)} characters: at most {REASON_LENGTH} are taken")


def _check_name(what: str, name: str) -> None:
    if not is_name(name):
        raise InvalidRequest(f"{what} {name[:NAME_LENGTH]!r} is not a name: {EXPECTED}")
