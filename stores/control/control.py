"""The control store's protocol: gates, quotas, the function registry and tokens, versioned as one; and the acts of
operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.act import Act
from ...model.function_spec import FunctionSpec
from ...model.gate import Gate
from ...model.limits import Quota, QuotaChange, Snapshot
from ...model.member import FleetMember, MemberOrder
from ...model.token import Token


class TokenStore(Protocol):
    """Tokens of people and programs. Each change raises the version, and is durable when it returns."""

    async def put_token(self, token: Token) -> int:
        """Keeps a token; no new version where one of its name is kept already."""

    async def remove_token(self, name: str) -> int:
        """Removes a token; no new version where there is none of the name."""


class ActStore(Protocol):
    """Acts of operators: added, ended once, never changed. They raise no version, and are durable when they return."""

    async def begin_act(self, act: Act) -> int:
        """Keeps an act, whole; its number, above those of all acts before."""

    async def end_act(self, number: int, outcome: str) -> None:
        """Keeps how an act ended; nothing where that is kept already, or where the act is forgotten."""

    async def acts(self, before: int = 0, limit: int = 100) -> list[Act]:
        """The newest acts below a number (0: of all), the newest first, at most 1000."""

    async def forget_acts(self, since: float, most: int) -> int:
        """Forgets the oldest acts: those of before `since` (wall clock seconds), and those beyond the `most` newest; at
        most 1000 at once. Answers how many those were."""


class MemberStore(Protocol):
    """Members of the fleet, and what is asked of them. Nothing of it raises a version."""

    async def tell_member(self, member: FleetMember, lease: float) -> list[MemberOrder]:
        """Keeps what a member tells of itself for so many seconds; answers what was asked of it and has no answer."""

    async def members(self) -> list[FleetMember]:
        """The members whose time is not over, by id."""

    async def forget_member(self, id: str) -> None:
        """Forgets a member that has ended. Harmless where it is not known."""

    async def put_order(self, order: MemberOrder) -> None:
        """Asks something of a member, once under this id. Orders are forgotten after ten minutes."""

    async def answer_order(self, id: str, answer: str) -> None:
        """Keeps an answer; the first one stays."""

    async def order(self, id: str) -> MemberOrder | None:
        """One order; None: it is not known, or forgotten."""


class Control(TokenStore, ActStore, MemberStore, Protocol):
    """Each change raises the version, and is durable when it returns."""

    async def snapshot(self) -> Snapshot:
        """Everything now."""

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        """The snapshot as soon as its version differs from `version`; None after `timeout` seconds."""

    async def put_gate(self, gate: Gate) -> int:
        """Sets a gate (replacing the one that stood before the same); action `resume` removes it."""

    async def end_gates(self) -> int:
        """Removes the gates whose end has come, by the clock of the store; answers the version."""

    async def put_quotas(self, change: QuotaChange, expected: int) -> int:
        """Replaces all quotas, as a version with who and why that is kept among the last ones, if they are those of
        version `expected`; answers 0 where they are not, and no new version when nothing changed."""

    async def quota_changes(self) -> list[QuotaChange]:
        """The versions of the quotas that are kept, the newest first."""

    async def register(self, functions: Sequence[FunctionSpec]) -> int:
        """Adds functions or replaces those of the same name; no new version when nothing changed."""

    async def belong(self, fleet: str) -> str:
        """The fleet that the store is of: the first one that said so, durably. No new version."""


__all__ = ["Control", "Gate", "Quota", "QuotaChange", "Snapshot"]
