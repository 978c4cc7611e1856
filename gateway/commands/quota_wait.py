"""The wait of a command until schedulers confirm that quotas are in force: bounded, and with the list of those that did
not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...foundation import terminal
from ...foundation.clock import SYSTEM_CLOCK
from ...model.errors import Unavailable
from ...sdk.discovery import find_gateways

if TYPE_CHECKING:
    from ...model.quotas_in_force import InForce

#: Seconds between two looks, of one look at one gateway, and of the longest wait.
LOOK_EVERY, LOOK_WITHIN, LONGEST = 0.05, 2.0, 600.0


@dataclass(slots=True)
class Answers:
    """The answers of all gateways: schedulers by name, and the gateways that did not answer, with the reason."""

    schedulers: dict[str, InForce] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)

    def missing(self, version: int) -> list[InForce]:
        """The schedulers that have not confirmed this version."""
        return [each for each in self.schedulers.values() if each.version < version]


@dataclass(frozen=True, slots=True)
class Waited:
    """The answers at the end of a wait, and how long it took."""

    answers: Answers
    seconds: float


def newest(rows: Iterable[InForce]) -> dict[str, InForce]:
    """The last confirmation of each scheduler, since one that went from a gateway to another is known to both."""
    found: dict[str, InForce] = {}
    for each in rows:
        known = found.get(each.scheduler)
        if known is None or (not each.ended, each.at) > (not known.ended, known.at):
            found[each.scheduler] = each
    return dict(sorted(found.items()))


def look(gateway: str | None) -> Answers:
    """Asks every gateway for the versions that schedulers have in force."""
    return terminal.call(_look(find_gateways(gateway).addresses))


def wait(gateway: str | None, version: int, patience: float) -> Waited:
    """Waits until all known schedulers have this version, for `patience` seconds at most."""
    return terminal.call(_wait(find_gateways(gateway).addresses, version, patience))


async def _wait(addresses: tuple[str, ...], version: int, patience: float) -> Waited:
    began = SYSTEM_CLOCK.monotonic()
    while True:
        answers = await _look(addresses)
        took = SYSTEM_CLOCK.monotonic() - began
        if not (answers.missing(version) or answers.silent) or took + LOOK_EVERY > patience:
            return Waited(answers, took)
        await asyncio.sleep(LOOK_EVERY)


async def _look(addresses: tuple[str, ...]) -> Answers:
    from ...wire.gateway import GatewayClient

    silent: dict[str, str] = {}

    async def one(address: str) -> list[InForce]:
        try:
            async with GatewayClient(address, timeout=LOOK_WITHIN) as client:
                return await client.limits_in_force()
        except Unavailable as error:
            silent[address] = str(error)
            return []

    found = await asyncio.gather(*map(one, addresses))
    return Answers(newest(row for rows in found for row in rows), silent)


def facts(waited: Waited, version: int) -> dict[str, Any]:
    """The end of a wait, as JSON data."""
    answers = waited.answers
    missing = answers.missing(version)
    return {
        "seconds": round(waited.seconds, 3),
        "confirmed": [each.scheduler for each in answers.schedulers.values() if each.version >= version],
        "unconfirmed": [
            {"scheduler": each.scheduler, "version": each.version, "ended_at": terminal.moment(each.ended)}
            for each in missing
        ],
        "silent_gateways": answers.silent,
    }


def complaints(answers: Answers, version: int) -> list[str]:
    """Lines for people: one for each scheduler that did not confirm, and each gateway that did not answer."""
    now = SYSTEM_CLOCK.wall()
    lines: list[str] = []
    for each in answers.missing(version):
        has = f"it has version {each.version}" if each.at else "it has confirmed nothing yet"
        ended = f"; it has not watched for {terminal.distance(now - each.ended)}" if each.ended else ""
        lines.append(f"not confirmed by the scheduler {each.scheduler}: {has}{ended}")
    for address, why in answers.silent.items():
        lines.append(f"the gateway {address} did not answer, so its schedulers are unknown: {why}")
    return lines
