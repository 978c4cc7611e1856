"""The commands `tailrace auth …`: who is who beyond one machine, by certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import Json
from ...model.caller import ROLES
from ...model.errors import ConfigError

auth = typer.Typer(
    help="Who is who beyond one machine: certificates of a fleet.", no_args_is_help=True, rich_markup_mode=None
)
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
