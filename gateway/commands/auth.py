"""The commands `tailrace auth …`: certificates of a fleet, and access tokens."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...model.caller import ROLES
from ...model.errors import ConfigError, InvalidRequest
from ...model.plain_text import plain
from ...sdk import found_gateway

if TYPE_CHECKING:
    from ...wire.ports.tokens import TokenView

auth = typer.Typer(
    help="Certificates and tokens for use beyond one machine.", no_args_is_help=True, rich_markup_mode=None
)
token = typer.Typer(
    help="Access tokens of people and programs, and their rights.", no_args_is_help=True, rich_markup_mode=None
)
auth.add_typer(token, name="token")
#: Roles that serve in most fleets; the others call.
SERVING = ("gateway", "node", "scheduler")
COLUMNS = ["folder", "fleet", "role", "name", "hosts", "until", "wrong"]
ISSUED_COLUMNS = ["serial", "role", "name", "since", "until", "folder", "state"]
#: The largest serial number that a certificate has.
SERIAL_BITS = 159

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the fleet's authority (CA).")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="NAME", help="A host by its DNS name or address. May be repeated."),
]
Days = Annotated[int, typer.Option("--days", metavar="N", help="Days for which certificates are valid.")]


@auth.command()
def init(
    folder: Folder,
    hosts: Hosts = None,
    fleet: Annotated[
        str, typer.Option("--fleet", metavar="NAME", help="The fleet's name; default: a random one.")
    ] = "",
    days: Days = 90,
    if_needed: Annotated[
        bool, typer.Option("--if-needed", help="Change nothing if the folder has a complete fleet already.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a fleet: an authority (CA), and a certificate for each role, each in a folder of its own. Those of gateway,
    node and scheduler may serve at the hosts. After an interrupted run, make the missing ones."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.errors import Conflict

    issuing, renewing, now = _issuing(), _renewing(), SYSTEM_CLOCK.wall()
    issuing.check_bounds(hosts or (), days)
    authority, missing = renewing.begun(folder, fleet, now)
    if not missing and not if_needed:
        raise Conflict(issuing.has_one(folder))
    for role in missing:
        authority.issue(role, role, hosts or () if role in SERVING else (), now, days, at=role)
    if missing and len(missing) < len(ROLES):
        terminal.complain(f"{folder} had an authority and not every role: made {', '.join(missing)}")
    _show(folder, as_json, ends=False)


@auth.command()
def issue(
    folder: Folder,
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"One of {', '.join(ROLES)}.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, unique in the role.")],
    hosts: Hosts = None,
    days: Days = 90,
    as_json: Json = False,
) -> None:
    """Make one more certificate in DIR/ROLE-NAME, or make that one anew. With --host it may serve at these hosts."""
    from ...foundation.clock import SYSTEM_CLOCK

    issuing = _issuing()
    made = issuing.Authority.of(folder).issue(role, name, hosts or (), SYSTEM_CLOCK.wall(), days)
    _show(made, as_json)


@auth.command()
def renew(
    folder: Folder,
    part: Annotated[
        str, typer.Argument(metavar="[PART]", help="A certificate's folder in DIR, such as node or ROLE-NAME.")
    ] = "",
    within: Annotated[
        int | None,
        typer.Option("--within", metavar="DAYS", min=0, help="Only certificates that end within so many days."),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", metavar="N", help="Days of validity; default: those of the former one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Renew the certificates of all parts or of one, in their folders: the same caller, the same hosts, a new key. A
    part that reads such a folder goes on with the new files by itself; copy them to hosts that have a copy."""
    import math

    from ...foundation.clock import SYSTEM_CLOCK

    issuing, renewing, now = _issuing(), _renewing(), SYSTEM_CLOCK.wall()
    if days is not None:
        issuing.check_bounds((), days)
    if part and within is not None:
        raise InvalidRequest("PART and --within are both given: expected one of them, or none for all parts")
    authority = issuing.Authority.of(folder)
    if part:
        found = [renewing.renewed(authority, part, now, days)]
    else:
        found = renewing.all_renewed(authority, now, days, math.inf if within is None else within)
    for each in found:
        if each.why:
            terminal.complain(f"{each.folder}: {each.why}")
    rows = [_row(shown, as_json) for each in found if each.done for shown in issuing.shown(each.folder, now)]
    terminal.show(rows, COLUMNS, as_json, empty=f"{folder}: nothing is due")


@auth.command("list")
def certificate_list(folder: Folder, as_json: Json = False) -> None:
    """Certificates of an authority that have not ended, also those that are in no folder any more: serial number, role,
    name, end and state."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...foundation.x509_checks import moment

    authority, now, rows = _issuing().Authority.of(folder), SYSTEM_CLOCK.wall(), []
    gone = authority.revoked()
    for each in authority.issued():
        here = authority.lying(each.folder)
        state = (
            "revoked" if each.serial in gone else "in its folder" if here and here.serial == each.serial else "former"
        )
        if each.until > now:
            said = {"serial": f"{each.serial:x}", "role": each.caller.role, "name": each.caller.name}
            rows.append(
                {
                    **said,
                    "since": moment(each.since),
                    "until": moment(each.until),
                    "folder": each.folder,
                    "state": state,
                }
            )
    terminal.show(rows, ISSUED_COLUMNS, as_json, empty=f"{folder}: all issued certificates have ended")


@auth.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a certificate, or of several.")],
    as_json: Json = False,
) -> None:
    """Show the certificates in a folder: caller, hosts at which it may serve, end, and faults."""
    _show(folder, as_json)


@auth.command("revoke")
def revoke_certificate(
    folder: Folder,
    at: Annotated[
        str, typer.Argument(metavar="[PART]", help="The certificate's folder in DIR, such as node or ROLE-NAME.")
    ] = "",
    serial: Annotated[
        str,
        typer.Option(
            "--serial",
            metavar="HEX",
            help="Only the certificate of this serial number, as `tailrace auth list` shows it.",
        ),
    ] = "",
) -> None:
    """Revoke all certificates of a caller that have not ended, former ones too, or one by its serial number. They are
    listed in crl.pem, in DIR and in the folders of all parts. Copy it to the hosts that are called, beside their
    tls.crt: callers with a revoked certificate are then refused, and their open calls are cut off."""
    from ...foundation.clock import SYSTEM_CLOCK

    if bool(at) == bool(serial):
        raise InvalidRequest("PART or --serial is missing, or both are given: expected one of them")
    authority, now = _issuing().Authority.of(folder), SYSTEM_CLOCK.wall()
    bring = "bring crl.pem to every part that is called"
    if serial:
        known = authority.revoke_serial(_serial(serial), now)
        whose = str(known[0].caller) if known else "a certificate that this authority did not record"
        terminal.say(f"{whose}: {serial} is revoked; {bring}")
        return
    found = authority.revoke(at, now)
    serials = ", ".join(f"{each.serial:x}" for each in found)
    terminal.say(f"{found[0].caller}: revoked ({serials}); {bring}, and `tailrace auth renew` makes another one")


def _serial(text: str) -> int:
    digits = text.replace(":", "")
    number = int(digits, 16) if digits and all(each in string.hexdigits for each in digits) else 0
    if not 0 < number.bit_length() <= SERIAL_BITS:
        raise InvalidRequest(
            f"--serial is {plain(text, 50)!r}: expected a number in hex, as `tailrace auth list` shows"
        )
    return number


@token.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name, by which it is revoked.")],
    may: Annotated[
        list[str],
        typer.Option(
            "--may",
            metavar="RIGHT",
            help="ACTION[:FUNCTION][#COLLECTION][@TENANT], such as submit:send_email@acme or read:mail.*; an action is "
            "submit, read, run, operate or administer. May be repeated.",
        ),
    ],
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Time for which it is valid, such as 12h.")
    ] = "90d",
    why: Why = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Make an access token, which is shown once. Its holder has the rights of the token, and no others."""
    from ...model.units import seconds
    from ...wire.ports.tokens import TokenOrder

    order = TokenOrder(name, tuple(may), seconds(lasts), why=why)
    made = found_gateway.ask(gateway, lambda client: client.create_token(order))
    terminal.show_facts({"token": made.secret, **_token_row(made.view, as_json)}, as_json)


@token.command("list")
def token_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Access tokens by name, with their rights and their ends."""
    found = found_gateway.ask(gateway, lambda client: client.tokens())
    rows = [_token_row(view, as_json) for view in found]
    terminal.show(rows, ["name", "may", "until", "created", "created_by"], as_json, empty="there are no tokens")


@token.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")],
    why: Why = "",
    gateway: GatewayAddress = None,
) -> None:
    """Revoke an access token; calls that use it are cut off within a second."""
    found_gateway.ask(gateway, lambda client: client.revoke_token(name, why))
    terminal.say(f"{name}: revoked")


def _token_row(view: TokenView, as_json: bool) -> dict[str, Any]:
    times = {"until": terminal.moment(view.until), "created": terminal.moment(view.created)}
    may = {"may": view.rights if as_json else ", ".join(view.rights)}
    return {"name": view.name, **may, **times, "created_by": view.created_by}


def _issuing() -> Any:
    try:
        from ...foundation import issuing
    except ImportError:
        from ...foundation.x509_checks import EXTRA

        raise ConfigError(EXTRA) from None
    return issuing


def _renewing() -> Any:
    from ...foundation import renewing

    return renewing


def _row(each: Any, as_json: bool) -> dict[str, Any]:
    """The row of a certificate in a folder."""
    from ...foundation.x509_checks import moment

    row = {
        "folder": str(each.path.parent),
        "hosts": each.hosts if as_json else ", ".join(each.hosts),
        "wrong": each.wrong,
    }
    return row if each.peer is None else row | {**each.peer.caller._asdict(), "until": moment(each.peer.until)}


def _show(folder: Path, as_json: bool, *, ends: bool = True) -> None:
    """Shows the certificates in a folder; with `ends` the command ends with 1 where something is wrong with one."""
    from ...foundation.clock import SYSTEM_CLOCK

    found = _issuing().shown(folder, SYSTEM_CLOCK.wall())
    if not found:
        raise ConfigError(
            f"{folder}: no certificate (tls.crt) here or in a folder below; `tailrace auth init` makes some"
        )
    terminal.show([_row(each, as_json) for each in found], COLUMNS, as_json)
    if ends and any(each.wrong for each in found):
        raise typer.Exit(terminal.FAILED)
