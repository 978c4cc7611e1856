"""Renews certificates in the folders in which they lie: the same caller, the same hosts, a new key. A process that
reads such a folder takes the new files without a restart."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from ..model.caller import ROLES
from ..model.errors import ConfigError, Conflict
from .certificates import AUTHORITY, CERTIFICATE, KEY
from .issued import Issued, issued
from .issuing import AUTHORITY_KEY, EARLIER, HERE, LONGEST_DAYS, Authority, checked_folder, has_one
from .x509_checks import check_chain, check_key, parsed

_DAY = 86_400.0


class RenewedFolder(NamedTuple):
    """The outcome for a folder: whether it has a new certificate, else why it has none; empty: it was not due."""

    folder: Path
    done: bool
    why: str = ""


def begun(folder: Path, fleet: str, now: float) -> tuple[Authority, list[str]]:
    """The authority in a folder, a new one where there is none, and the roles that have no certificate yet: after an
    `init` that died, those that it did not reach. Raises Conflict for the folder of another fleet."""
    if not (folder / AUTHORITY).exists():
        return Authority.made(folder, fleet, now), [*ROLES]
    if not (folder / AUTHORITY_KEY).exists():
        raise Conflict(has_one(folder))
    authority = Authority.of(folder)
    if fleet and fleet != authority.fleet:
        raise Conflict(f"{folder} is of the fleet {authority.fleet}, and not of {fleet}: {has_one(folder)}")
    return authority, [role for role in ROLES if not _whole(folder / role)]


def renewed(authority: Authority, at: str, now: float, days: int | None = None) -> RenewedFolder:
    """Renews the certificate in the folder `at` below the authority's, for so many days; None: for as many as the
    former had. Raises ConfigError, and InvalidRequest for a text that is no folder's name."""
    former = authority.lying(checked_folder(at)) or _noted(authority, at)
    if former is None:
        raise ConfigError(
            f"{authority.folder / at}: no certificate that the authority in {authority.folder} issued; `tailrace auth "
            "issue` makes one; a certificate of another authority is renewed there"
        )
    hosts = [each for each in former.hosts if each not in HERE] or list(former.hosts[:1])
    lasted = round((former.until - former.since - EARLIER.total_seconds()) / _DAY)
    wanted = min(max(1, lasted), LONGEST_DAYS) if days is None else days
    return RenewedFolder(authority.issue(former.caller.role, former.caller.name, hosts, now, wanted, at), True)


def all_renewed(
    authority: Authority, now: float, days: int | None = None, within: float = math.inf
) -> list[RenewedFolder]:
    """Renews all certificates in folders below the authority's that end within so many days, or are not whole. A
    revoked one is renewed only when it is named."""
    gone, found = authority.revoked(), list[RenewedFolder]()
    folders = {path.parent for name in (CERTIFICATE, KEY) for path in authority.folder.glob(f"*/{name}")}
    for folder in sorted(folders):
        former = authority.lying(folder.name) or _noted(authority, folder.name)
        if former is None:
            found.append(RenewedFolder(folder, False, f"not of the authority in {authority.folder}: left unchanged"))
        elif former.serial in gone:
            found.append(
                RenewedFolder(folder, False, "the certificate was revoked: name this folder to renew it all the same")
            )
        elif former.until - now < within * _DAY or not _fits(folder):
            found.append(renewed(authority, folder.name, now, days))
        else:
            found.append(RenewedFolder(folder, False))
    return found


def _noted(authority: Authority, at: str) -> Issued | None:
    """The certificate that was issued last into a folder whose certificate cannot be read."""
    path = authority.folder / at / CERTIFICATE
    try:
        parsed(path.read_bytes(), str(path))
    except (OSError, ConfigError):
        return next((each for each in reversed(issued(authority.folder)) if each.folder == at), None)
    return None  # somebody else's


def _whole(folder: Path) -> bool:
    return all((folder / name).exists() for name in (CERTIFICATE, KEY, AUTHORITY))


def _fits(folder: Path) -> bool:
    """Whether the files in a folder belong together: an interrupted writer leaves some of before."""
    path, at, authority = (folder / name for name in (CERTIFICATE, KEY, AUTHORITY))
    try:
        chain = parsed(path.read_bytes(), str(path))
        check_key(chain[0], at.read_bytes(), str(path), str(at))
        check_chain(chain, parsed(authority.read_bytes(), str(authority)), str(path), str(authority))
    except (OSError, ConfigError):
        return False
    return True
