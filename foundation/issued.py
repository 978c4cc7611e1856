"""The list of the certificates that an authority issued: a line for each, so that one whose files are gone can still be
revoked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..model.caller import Caller, caller_of
from ..model.errors import ConfigError, InvalidRequest
from .atomic_files import NewFile, put

BOOK = "issued.jsonl"
#: Seconds for which a line stays after the end of its certificate: so that a clock that is wrong once forgets nothing.
KEPT = 825 * 86_400.0
_EXPECTED = "serial, caller, since, until, folder and hosts of a certificate"


class Issued(NamedTuple):
    """A certificate that was issued: its serial number, its caller, its first and last moment (wall clock seconds), the
    folder below the authority's that it went into, and the hosts where it may serve."""

    serial: int
    caller: Caller
    since: float
    until: float
    folder: str
    hosts: tuple[str, ...] = ()


def issued(folder: Path) -> list[Issued]:
    """The list in an authority's folder, in the order of issuing; empty: there is none. Raises ConfigError."""
    path = folder / BOOK
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    return [_line(line, f"{path}, line {number}") for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def note(folder: Path, found: Iterable[Issued], now: float) -> None:
    """Writes the list anew. Raises ConfigError, and then the former list is unchanged."""
    lines = [json.dumps(_said(each)) for each in found if each.until + KEPT > now]
    put(folder, {BOOK: NewFile("".join(f"{line}\n" for line in lines).encode(), 0o600)})


def _said(each: Issued) -> dict[str, Any]:
    return each._asdict() | {"serial": f"{each.serial:x}", "caller": each.caller.uri}


def _line(text: str, where: str) -> Issued:
    try:
        said = json.loads(text)
        hosts = tuple(str(each) for each in said["hosts"])
        times = float(said["since"]), float(said["until"])
        return Issued(int(said["serial"], 16), caller_of([said["caller"]]), *times, str(said["folder"]), hosts)
    except (ValueError, TypeError, KeyError, AttributeError, InvalidRequest):
        raise ConfigError(f"{where}: expected {_EXPECTED} as JSON; put it right, or take the line out") from None
