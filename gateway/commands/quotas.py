"""The commands `tailrace quota …`: list quotas, set one, and replace all of them as one version."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...sdk import found_gateway
from . import quota_wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...model.limits import Quota, Snapshot
    from ...model.unit_rate import UnitRate

quota = typer.Typer(help="Limits of functions, tenants and downstreams.", no_args_is_help=True, rich_markup_mode=None)

Function = Annotated[str, typer.Argument(metavar="FUNCTION", help="The function; empty: no function.")]
Collection = Annotated[str, typer.Option("--collection", help="Only this collection of the function.")]
Tenant = Annotated[str, typer.Option("--tenant", help="This tenant (of the function or downstream, if one is named).")]
Downstream = Annotated[str, typer.Option("--downstream", help="This downstream, for all its callers together.")]
Per = Annotated[str, typer.Option("--per", help="tenant: the same quota for each tenant without one of its own.")]
Why = Annotated[str, typer.Option("--why", help="The reason, kept in the history.")]
Wait = Annotated[str, typer.Option("--wait", metavar="TIME", help="Time to wait until schedulers have it; 0: none.")]
DEFAULT_WAIT = "5s"
File = Annotated[Path, typer.Argument(metavar="FILE", help="All quotas, as in quotas.yaml.")]

_COLUMNS = [
    "function",
    "collection",
    "tenant",
    "downstream",
    "per",
    "concurrency",
    "rate",
    "burst",
    "weight",
    "reserve",
    "highest",
]


def _rate(text: str | float) -> float:
    from ...model.errors import InvalidRequest
    from ...model.units import per_second

    try:
        return per_second(text)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None


@quota.command("set")
def quota_set(
    function: Function = "",
    collection: Collection = "",
    tenant: Tenant = "",
    downstream: Downstream = "",
    per: Per = "",
    concurrency: Annotated[int, typer.Option("--concurrency", min=0, help="Runs at once; 0: no limit.")] = 0,
    rate: Annotated[
        float, typer.Option("--rate", parser=_rate, metavar="RATE", help="Starts per second, or such as 500/min.")
    ] = 0.0,
    burst: Annotated[float, typer.Option("--burst", min=0, help="Starts at once after a quiet time.")] = 0.0,
    weight: Annotated[float, typer.Option("--weight", min=0, help="Share when functions or tenants compete.")] = 0.0,
    max_values: Annotated[int, typer.Option("--max-values", min=0, help="Most tenants that are counted apart.")] = 0,
    adaptive: Annotated[
        bool | None,
        typer.Option("--adaptive/--no-adaptive", help="Whether the limit of a downstream adapts when that throttles."),
    ] = None,
    floor: Annotated[float | None, typer.Option("--floor", help="Lowest adaptive limit, in starts per second.")] = None,
    ceiling: Annotated[float | None, typer.Option("--ceiling", help="Highest adaptive limit.")] = None,
    calls: Annotated[
        list[str] | None, typer.Option("--calls", metavar="DOWNSTREAM", help="A downstream that the function calls.")
    ] = None,
    reserve: Annotated[
        float, typer.Option("--reserve", min=0, help="Guaranteed slot-seconds a minute; 600: ten slots.")
    ] = 0.0,
    lend: Annotated[bool, typer.Option("--lend/--keep", help="Whether others may use the idle part of it.")] = True,
    opportunistic: Annotated[bool, typer.Option("--opportunistic", help="Run only in idle slots.")] = False,
    highest: Annotated[str, typer.Option("--highest", help="The highest priority of submissions.")] = "",
    units: Annotated[
        list[str] | None,
        typer.Option("--units", metavar="UNIT=RATE", help="A rate in a unit of one's own, such as tokens=90000/min."),
    ] = None,
    why: Why = "",
    gateway: GatewayAddress = None,
) -> None:
    """Set all limits of a function, a tenant, a downstream; a limit that is not given is removed."""
    from ...model.adaptive import Adaptive
    from ...model.limits import Quota

    given = {"on": adaptive, "floor": floor, "ceiling": ceiling}
    told = {name: value for name, value in given.items() if value is not None}
    adapts = Adaptive(**told) if told else None  # type: ignore[arg-type]
    wanted = Quota(
        function,
        concurrency,
        rate,
        burst,
        weight,
        collection,
        tenant,
        downstream,
        per,
        max_values,
        tuple(calls or ()),
        reserve,
        lend,
        opportunistic,
        adapts,
        highest,
        _unit_rates(units or ()),
    )
    _set(gateway, wanted, why)
    terminal.say(f"{_called(wanted)}: {'no limits' if wanted.empty else 'limits set'}")


@quota.command("unset")
def quota_unset(
    function: Function = "",
    collection: Collection = "",
    tenant: Tenant = "",
    downstream: Downstream = "",
    per: Per = "",
    why: Why = "",
    gateway: GatewayAddress = None,
) -> None:
    """Remove all limits of a function, a tenant, a downstream."""
    from ...model.did_you_mean import meant
    from ...model.limits import Quota

    wanted = Quota(function, collection=collection, tenant=tenant, downstream=downstream, per=per)
    if not _set(gateway, wanted, why):
        quotas = found_gateway.ask(gateway, lambda client: client.limits()).quotas
        near = meant(_called(wanted), map(_called, quotas), "`tailrace quota list` shows all quotas")
        terminal.not_found(f"{_called(wanted)} has no quota, so nothing was changed; {near}")
    terminal.say(f"{_called(wanted)}: no limits")


@quota.command("list")
def quota_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Quotas, with the present limits of downstreams and the balances of rates in units."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.limits import Quota
    from ...sdk import downstream_status

    quotas = found_gateway.ask(gateway, lambda client: client.limits()).quotas
    reply = terminal.call(downstream_status.ask())
    states = reply.downstreams
    wall = SYSTEM_CLOCK.wall()
    now = {(each.downstream, each.tenant): downstream_status.sentence(each, wall) for each in states}
    left: dict[tuple[str, str, str, str], list[str]] = {}
    for each in reply.units:
        place = (each.function, each.collection, each.tenant, each.downstream)
        left.setdefault(place, []).append(downstream_status.unit_sentence(each))
    whole = {(each.downstream, each.tenant) for each in quotas if each.downstream and not each.per}
    quotas = [*quotas, *(Quota(downstream=name, tenant=tenant) for name, tenant in now if (name, tenant) not in whole)]
    rows = [
        {name: getattr(each, name) for name in _COLUMNS}
        | {"units": ", ".join(one.said for one in each.units), "now": _now(each, now, left)}
        for each in quotas
    ]
    terminal.show(rows, [*_COLUMNS, "units", "now"], as_json, empty="nothing has a limit")


def _now(quota: Quota, now: dict[tuple[str, str], str], left: dict[tuple[str, str, str, str], list[str]]) -> str:
    """The present limit of a downstream, and the balances of rates in units, in words."""
    if quota.per:
        return ""
    found = now.get((quota.downstream, quota.tenant), "") if not quota.function else ""
    return "; ".join(filter(None, [found, *left.get(quota.key[:4], ())]))


@quota.command("show")
def quota_show(
    function: Function = "",
    collection: Collection = "",
    tenant: Tenant = "",
    downstream: Downstream = "",
    per: Per = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """One quota with all its fields."""
    from ...model.limits import Quota

    wanted = Quota(function, collection=collection, tenant=tenant, downstream=downstream, per=per)
    found = [
        each for each in found_gateway.ask(gateway, lambda client: client.limits()).quotas if each.key == wanted.key
    ]
    if not found:
        terminal.not_found(f"{_called(wanted)} has no quota: `tailrace quota list` shows all quotas")
    facts = asdict(found[0]) | {"downstreams": list(found[0].downstreams)}
    facts |= {"units": [asdict(each) if as_json else each.said for each in found[0].units]}
    terminal.show_facts(facts, as_json)


class ToPlan(NamedTuple):
    """Quotas of a file beside those in force."""

    snapshot: Snapshot
    wanted: list[Quota]


def to_plan(file: Path, gateway: str | None) -> ToPlan:
    """Reads a file and the quotas in force. Raises ConfigError and Conflict for a file that cannot be applied."""
    snapshot = found_gateway.ask(gateway, lambda client: client.limits())
    return ToPlan(snapshot, _read(file, snapshot))


def planned(plan: ToPlan) -> dict[str, Any]:
    """The changes that a file would make, and warnings, as JSON data."""
    from ..quota_plan import differences, warnings

    snapshot, wanted = plan
    changes = [each._asdict() for each in differences(snapshot.quotas, wanted)]
    return {"version": snapshot.quotas_version, "changes": changes, "warnings": warnings(wanted, snapshot.functions)}


def show_plan(plan: dict[str, Any]) -> None:
    """Prints a plan for people."""
    terminal.show(plan["changes"], ["change", "quota", "before", "after"], False, empty="no quota would change")
    for warning in plan["warnings"]:
        terminal.say(f"warning: {warning}")


@quota.command("apply")
def quota_apply(
    file: File, why: Why = "", wait: Wait = DEFAULT_WAIT, gateway: GatewayAddress = None, as_json: Json = False
) -> None:
    """Replace all quotas by those of a file, as one version, and wait until the schedulers confirm that it is in force.
    Limits that are not in the file are removed. Exit code 1 when a scheduler did not confirm in time."""
    from ..quota_plan import warnings

    patience = _patience(wait)
    snapshot = found_gateway.ask(gateway, lambda client: client.limits())
    wanted = _read(file, snapshot)
    for warning in warnings(wanted, snapshot.functions):
        terminal.complain(f"warning: {warning}")
    version, changes = _apply(gateway, snapshot, wanted, why)
    _confirmed(gateway, version, patience, f"{len(wanted)} quotas" if changes else "nothing changes", changes, as_json)


@quota.command("history")
def quota_history(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """The versions of the quotas that are kept, the newest first."""
    changes = found_gateway.ask(gateway, lambda client: client.quota_changes())
    in_force = quota_wait.look(gateway).schedulers.values()
    rows: list[dict[str, Any]] = []
    for each in changes:
        where = [one.scheduler for one in in_force if one.version == each.version]
        facts = {"version": each.version, "at": terminal.moment(each.at), "who": each.who, "quotas": len(each.quotas)}
        rows.append(facts | {"why": each.why, "in_force_at": where if as_json else ", ".join(where)})
    columns = ["version", "at", "who", "quotas", "why", "in_force_at"]
    terminal.show(rows, columns, as_json, empty="quotas were never set")


@quota.command("rollback")
def quota_rollback(
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="A version that `history` shows.")],
    why: Why = "",
    wait: Wait = DEFAULT_WAIT,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Make the quotas equal to those of a version in the history: a new version, waited for like that of `apply`."""
    patience = _patience(wait)
    changes = found_gateway.ask(gateway, lambda client: client.quota_changes())
    found = [each for each in changes if each.version == version]
    if not found:
        kept = f"{changes[-1].version} to {changes[0].version}" if changes else "none"
        terminal.not_found(f"version {version} is not kept: `tailrace quota history` shows the kept ones ({kept})")
    snapshot = found_gateway.ask(gateway, lambda client: client.limits())
    made, changed = _apply(gateway, snapshot, list(found[0].quotas), why or f"rollback to version {version}")
    _confirmed(gateway, made, patience, f"the quotas of version {version}", changed, as_json)


def _patience(wait: str) -> float:
    from ...model.errors import InvalidRequest
    from ...model.units import duration_text, seconds

    patience = seconds(wait)
    if patience > quota_wait.LONGEST:
        raise InvalidRequest(f"--wait is {wait}: expected at most {duration_text(quota_wait.LONGEST)}")
    return patience


def _confirmed(gateway: str | None, version: int, patience: float, what: str, changed: bool, as_json: bool) -> None:
    """Waits until the version is in force, and prints how that went."""
    waited = quota_wait.wait(gateway, version, patience)
    answers = waited.answers
    missing = answers.missing(version)
    if as_json:
        terminal.show_json({"version": version, "changed": changed, **quota_wait.facts(waited, version)})
    elif not answers.schedulers:
        terminal.say(f"version {version} is kept: {what}; no scheduler watches, so it is in force when one does")
    elif missing:
        have = len(answers.schedulers) - len(missing)
        terminal.say(f"version {version} is kept, and in force at {have} of {len(answers.schedulers)}: {what}")
    else:
        took = f"after {terminal.distance(waited.seconds)}" if changed else "already"
        terminal.say(f"version {version} is in force at {', '.join(answers.schedulers)}, {took}: {what}")
    if not as_json:
        for line in quota_wait.complaints(answers, version):
            terminal.complain(line)
    if patience and (missing or answers.silent):
        raise typer.Exit(terminal.FAILED)


def _unit_rates(given: Iterable[str]) -> tuple[UnitRate, ...]:
    """The rates of `--units`: UNIT=RATE, and after commas burst and estimate. Raises InvalidRequest."""
    from ...model.errors import InvalidRequest
    from ...model.unit_rate import UnitRate
    from ...model.units import per_second

    found = []
    for text in given:
        unit, mark, rest = text.partition("=")
        rate, *more = rest.split(",")
        named = dict(each.partition("=")[::2] for each in more)
        try:
            if not mark or named.keys() - {"burst", "estimate"}:
                raise ValueError
            numbers = {name: float(value) for name, value in named.items()}
        except ValueError:
            raise InvalidRequest(
                f"--units {text!r:.200}: expected UNIT=RATE, such as tokens=90000/min, "
                "or tokens=90000/min,burst=9000,estimate=500"
            ) from None
        found.append(UnitRate(unit, per_second(rate), **numbers))
    return tuple(sorted(found, key=lambda each: each.unit))


def _called(quota: Quota) -> str:
    """The name of a quota in messages: of a function alone, just its name."""
    return quota.function if quota.function and not any(quota.key[1:]) else quota.what


def _set(gateway: str | None, wanted: Quota, why: str) -> bool:
    """Sets one quota beside the others, as a version with author and reason. Returns whether that changed anything."""
    from ..quota_plan import checked_quota, with_changes

    checked_quota(wanted)
    snapshot = found_gateway.ask(gateway, lambda client: client.limits())
    if wanted.function and not wanted.empty:
        _check_known(wanted.function, snapshot)
    quotas = with_changes(snapshot.quotas, [wanted])
    changes = quotas != with_changes(snapshot.quotas, [])
    if changes:
        _apply(gateway, snapshot, quotas, why or f"quota set {wanted.what}")
    return changes


def _check_known(function: str, snapshot: Snapshot) -> None:
    from ...model.did_you_mean import meant
    from ...model.errors import UnknownFunction

    known = [spec.name for spec in snapshot.functions]
    if function not in known:
        raise UnknownFunction(f"no worker has ever registered {function!r}: {meant(function, known)}")


def _apply(gateway: str | None, snapshot: Snapshot, quotas: list[Quota], why: str) -> tuple[int, bool]:
    """Replaces all quotas. Returns their version, and whether that is a new one: equal quotas make none."""
    from ...foundation.identity import whoami
    from ...model.limits import QuotaChange
    from ..quota_plan import differences

    if not differences(snapshot.quotas, quotas):
        return snapshot.quotas_version, False
    change = QuotaChange(snapshot.quotas_version, whoami(), why, 0.0, tuple(quotas))
    return found_gateway.ask(gateway, lambda client: client.apply_quotas(change)), True


def _read(file: Path, snapshot: Snapshot) -> list[Quota]:
    """The quotas of a file. Raises ConfigError, and Conflict for one that was made from another version."""
    from ...foundation.config import load
    from ...model.errors import Conflict
    from ..quotas import QuotasConfig

    found = load(file, QuotasConfig)
    if found.version and found.version != snapshot.quotas_version:
        raise Conflict(
            f"{file}: its version is {found.version}, and version {snapshot.quotas_version} of the quotas is in force: "
            "look at the changes (`tailrace quota history`), and set its `version` to the one in force"
        )
    return [replace(quota) for quota in found.all()]
