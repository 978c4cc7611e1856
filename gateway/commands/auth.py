"""The commands `tailrace auth …`: who is who beyond one machine, by certificates and tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...model.caller import ROLES
from ...model.errors import ConfigError
from ...sdk import found_gateway

if TYPE_CHECKING:
    from ...wire.ports.tokens import TokenView

auth = typer.Typer(
    help="Who is who beyond one machine: certificates of a fleet, tokens.", no_args_is_help=True, rich_markup_mode=None
)
token = typer.Typer(
    help="Tokens of people and programs, and what they may do.", no_args_is_help=True, rich_markup_mode=None
)
auth.add_typer(token, name="token")
#: What serves in most fleets; the others call.
SERVING = ("gateway", "node", "scheduler")
COLUMNS = ["folder", "fleet", "role", "name", "hosts", "until", "wrong"]

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the fleet's authority.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="NAME", help="A host, as others call it, or its address. May be repeated."),
]
Days = Annotated[int, typer.Option("--days", metavar="N", help="For how long certificates are valid.")]


@auth.command()
def init(
    folder: Folder,
    hosts: Hosts = None,
    fleet: Annotated[
        str, typer.Option("--fleet", metavar="NAME", help="The fleet's name; default: a random one.")
    ] = "",
    days: Days = 90,
    as_json: Json = False,
) -> None:
    """Make a fleet: an authority, and a certificate for each role, in a folder of its own. Those of gateway, node and
    scheduler may serve at the hosts."""
    from ...foundation.clock import SYSTEM_CLOCK

    issuing, now = _issuing(), SYSTEM_CLOCK.wall()
    issuing.check_bounds(hosts or (), days)
    authority = issuing.Authority.made(folder, fleet, now)
    for role in ROLES:
        authority.issue(role, role, hosts or () if role in SERVING else (), now, days, at=role)
    _show(folder, as_json)


@auth.command()
def issue(
    folder: Folder,
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"One of {', '.join(ROLES)}.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name among those of the role.")],
    hosts: Hosts = None,
    days: Days = 90,
    as_json: Json = False,
) -> None:
    """Make one more certificate, in DIR/ROLE-NAME, or that one anew. With hosts it may serve there."""
    from ...foundation.clock import SYSTEM_CLOCK

    issuing = _issuing()
    made = issuing.Authority.of(folder).issue(role, name, hosts or (), SYSTEM_CLOCK.wall(), days)
    _show(made, as_json)


@auth.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of a certificate, or of several.")],
    as_json: Json = False,
) -> None:
    """Show whose the certificates in a folder are, where they may serve, until when, and what is wrong with them."""
    _show(folder, as_json)


@auth.command("revoke")
def revoke_certificate(
    folder: Folder,
    at: Annotated[str, typer.Argument(metavar="PART", help="The folder of the certificate in DIR, as ROLE-NAME.")],
) -> None:
    """Revoke a certificate: crl.pem in DIR, and in the folders of all parts, says so. Bring it to the hosts that are
    called, beside their tls.crt: who shows that certificate is refused, and who uses it just now is cut off."""
    from ...foundation.clock import SYSTEM_CLOCK

    peer = _issuing().Authority.of(folder).revoke(at, SYSTEM_CLOCK.wall())
    terminal.say(f"{peer.caller}: revoked; bring crl.pem to every part that is called")


@token.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, by which it is revoked.")],
    may: Annotated[
        list[str],
        typer.Option(
            "--may",
            metavar="RIGHT",
            help="ACTION[:FUNCTION][#COLLECTION][@TENANT], such as submit:send_email@acme or read:mail.*; an action is "
            "submit, read, run, operate or administer. May be repeated.",
        ),
    ],
    lasts: Annotated[str, typer.Option("--for", metavar="TIME", help="How long it is valid, such as 12h.")] = "90d",
    why: Why = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Make a token, which is shown once. Whoever has it may do what its rights say, and nothing else."""
    from ...model.units import seconds
    from ...wire.ports.tokens import TokenOrder

    order = TokenOrder(name, tuple(may), seconds(lasts), why=why)
    made = found_gateway.ask(gateway, lambda client: client.create_token(order))
    terminal.show_facts({"token": made.secret, **_token_row(made.view, as_json)}, as_json)


@token.command("list")
def token_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Tokens by name, with their rights and their ends."""
    found = found_gateway.ask(gateway, lambda client: client.tokens())
    rows = [_token_row(view, as_json) for view in found]
    terminal.show(rows, ["name", "may", "until", "created", "created_by"], as_json, empty="there are no tokens")


@token.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    why: Why = "",
    gateway: GatewayAddress = None,
) -> None:
    """Revoke a token: whoever uses it just now is cut off within a second."""
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


def _show(folder: Path, as_json: bool) -> None:
    from ...foundation.clock import SYSTEM_CLOCK
    from ...foundation.x509_checks import moment

    found = _issuing().shown(folder, SYSTEM_CLOCK.wall())
    if not found:
        raise ConfigError(
            f"{folder}: no certificate here (tls.crt), nor in a folder in it; `tailrace auth init` makes some"
        )
    rows = []
    for each in found:
        row = {"folder": str(each.path.parent), "hosts": each.hosts, "wrong": each.wrong}
        if each.peer is not None:
            row |= {**each.peer.caller._asdict(), "until": moment(each.peer.until)}
        rows.append(row if as_json else row | {"hosts": ", ".join(each.hosts)})
    terminal.show(rows, COLUMNS, as_json)
    if any(each.wrong for each in found):
        raise typer.Exit(terminal.FAILED)
