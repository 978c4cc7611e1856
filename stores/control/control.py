"""The control store's protocol: gates, quotas, the function registry and tokens, under one version number; the acts of
operators (the audit trail); and the members of the fleet."""

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
        """Keeps a token; returns the version, which stays where one of its name is kept already."""

    async def remove_token(self, name: str) -> int:
        """Removes a token; returns the version, which stays where there is none of the name."""


class ActStore(Protocol):
    """Acts of operators (the audit trail): added, ended once, never changed. They raise no version. A change is durable
    when its method returns."""

    async def begin_act(self, act: Act) -> int:
        """Keeps an act, whole; returns its number, above those of all acts before."""

    async def end_act(self, number: int, outcome: str) -> None:
        """Keeps the outcome of an act. Changes nothing where an outcome is kept already, or where the act is
        forgotten."""

    async def acts(self, before: int = 0, limit: int = 100) -> list[Act]:
        """The newest acts below a number (0: of all), the newest first, at most 1000."""

    async def forget_acts(self, since: float, most: int) -> int:
        """Forgets the oldest acts: those from before `since` (wall clock seconds), and those beyond the `most` newest;
        at most 1000 at once. Returns their number."""


class MemberStore(Protocol):
    """Members of the fleet, and orders to them. No change here raises a version."""

    async def tell_member(self, member: FleetMember, lease: float) -> list[MemberOrder]:
        """Keeps a member's description of itself for `lease` seconds; returns the orders to it that have no answer
        yet."""

    async def members(self) -> list[FleetMember]:
        """The members whose lease is not over, by id."""

    async def forget_member(self, id: str) -> None:
        """Forgets a member that has ended. Harmless where it is not known."""

    async def put_order(self, order: MemberOrder) -> None:
        """Keeps an order to a member, once under its id. Orders are forgotten after ten minutes."""

    async def answer_order(self, id: str, answer: str) -> None:
        """Keeps a member's answer to an order; the first one stays."""

    async def order(self, id: str) -> MemberOrder | None:
        """One order; None: it is not known, or forgotten."""


class Control(TokenStore, ActStore, MemberStore, Protocol):
    """The control store. Each change raises the version, and is durable when its method returns."""

    async def snapshot(self) -> Snapshot:
        """The gates, quotas, functions and tokens of this moment, with their version."""

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        """The snapshot as soon as its version differs from `version`; None after `timeout` seconds."""

    async def put_gate(self, gate: Gate) -> int:
        """Sets a gate, in place of one for the same function, collection, tenant, downstream or tailer; the action
        `resume` removes it. Returns the version."""

    async def end_gates(self, over: Sequence[Gate] = ()) -> int:
        """Removes these gates, where they are still the ones of these versions; returns the version."""

    async def put_quotas(self, change: QuotaChange, expected: int) -> int:
        """Replaces all quotas, if they are still those of version `expected`. The new ones are kept among the last
        versions, with who changed them and why. Returns the version: 0 where another one was expected, the same as
        before when nothing changed."""

    async def quota_changes(self) -> list[QuotaChange]:
        """The versions of the quotas that are kept, the newest first."""

    async def register(self, functions: Sequence[FunctionSpec]) -> int:
        """Adds functions, or replaces those of the same name; returns the version, which stays when nothing changed."""

    async def belong(self, fleet: str) -> str:
        """The fleet to which the store belongs: the first one that asked, kept durably. Raises no version."""


__all__ = ["Control", "Gate", "Quota", "QuotaChange", "Snapshot"]
