"""The one tree of errors.

TailraceError
├── UserError                 somebody's input is wrong; the message says what to do; exit code 2
│   ├── ConfigError           a YAML file, a flag or an environment variable
│   ├── DeclarationError      a function that cannot be registered as it is written
│   ├── UnknownFunction       a name nobody ever registered
│   ├── InvalidPayload        a payload of the wrong shape or size
│   ├── InvalidRequest        any other argument outside its bounds (a negative delay, an unknown id)
│   ├── Conflict              it exists already, or moved on since it was read
│   ├── PositionsGone         what a source had is gone before it was done; nothing passes that without somebody's word
│   └── ResultGone            a return value that was kept until newer ones needed its room
├── Unavailable               the other side cannot be reached or refuses for now; trying again may help
│   ├── NotConnected          the one error a source raises when its connection is gone
│   ├── Overloaded            refused to protect itself; carries retry_after
│   └── StoreFull             the disk or the quota behind a store is exhausted
├── StaleFence                a write about a workload with an older fence; nothing was changed
├── SessionLost               the other side does not know this session any more
├── AlreadyInUse              a port or a data directory that another process holds
├── WorkloadFailed            what `result()` raises for a workload that ended without success
├── PartlySubmitted           a later chunk of a `submit_many` was refused; carries what had been accepted
└── FunctionSignal            what a function raises to say how it ended (not failures of tailrace)
    ├── RetryLater            try again, after a delay of its choosing
    ├── Fatal                 never try again
    └── Throttled             a downstream asked us to wait; spends no attempt
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TailraceError(Exception):
    """The root of everything tailrace raises on purpose."""


class UserError(TailraceError):
    """Input that is wrong. The message names it, what was expected and what to do."""


class ConfigError(UserError):
    """A YAML file, a flag or an environment variable is wrong."""


class DeclarationError(UserError):
    """A function cannot be registered as it is written."""


class UnknownFunction(UserError):
    """A function name that was never registered."""


class InvalidPayload(UserError):
    """A payload of the wrong shape or size."""


class Misfit(InvalidPayload):
    """A payload that a worker read, and that is not what its function takes: it does not run."""


class InvalidRequest(UserError):
    """An argument outside its bounds, or an id that does not exist."""


class Conflict(UserError):
    """A conflict: the thing to be created exists, or the thing to be changed moved on since it was read."""


class PositionsGone(UserError):
    """Positions that a source forgot before they were done. Its tailer stops, and stays so until an operator says what
    to do."""


class ResultGone(UserError):
    """A return value that was kept, and was pushed out by newer ones: the workload ended well, and it is not known any
    more what it returned."""


class Unavailable(TailraceError):
    """The other side cannot be reached or refuses for now; the same call may succeed later."""


class NotConnected(Unavailable):
    """A source's connection is gone. The pump reconnects with back-off; the source only raises this."""


class Overloaded(Unavailable):
    """Refused to protect the platform. `retry_after` is in seconds. `of_tenant`: a tenant has taken its part of a room,
    which others find open."""

    def __init__(self, message: str, retry_after: float = 1.0, of_tenant: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.of_tenant = of_tenant


class StoreFull(Unavailable):
    """The disk or quota behind a store is exhausted; nothing of the refused write was kept."""


class StaleFence(TailraceError):
    """A write about a workload carried an older fence than the store has seen. Nothing was changed."""


class SessionLost(TailraceError):
    """The other side does not know this session any more; items in flight wait for their lease to end."""


class AlreadyInUse(TailraceError):
    """A port or a data directory is held by another process; the message names both."""


class WorkloadFailed(TailraceError):
    """A workload ended, but not in success. `outcome` is its final state (`fatal_failure`, `cancelled`, `dropped` or
    `expired`), `reason` what its last run or its owner said, `attempts` how many runs failed."""

    def __init__(self, message: str, *, id: str = "", outcome: str = "", reason: str = "", attempts: int = 0) -> None:
        super().__init__(message)
        self.id = id
        self.outcome = outcome
        self.reason = reason
        self.attempts = attempts


class PartlySubmitted(TailraceError):
    """A chunk of a `submit_many` was refused or not answered after others were accepted; its cause is the refusal.
    `handles` are those of the accepted workloads, which are the first ones in the order given."""

    def __init__(self, message: str, handles: Sequence[Any]) -> None:
        super().__init__(message)
        self.handles = list(handles)


class FunctionSignal(TailraceError):
    """Base of the exceptions that a function raises to say how it ended."""


class RetryLater(FunctionSignal):
    """Raised by a function: try again after `after` (seconds or "5m"; None: as the retry policy says)."""

    def __init__(self, reason: str = "", *, after: float | str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


class Fatal(FunctionSignal):
    """Raised by a function: never try again; the workload becomes a dead letter with this reason."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Throttled(FunctionSignal):
    """Raised by a function: `downstream` asked us to wait `retry_after` (seconds or "30s"). Spends no attempt.

    downstream  one that the function declares; empty: the only one that it does
    scope       "tenant": the downstream throttles the account of the item's tenant alone
    """

    def __init__(
        self,
        reason: str = "",
        *,
        downstream: str = "",
        retry_after: float | str | None = None,
        scope: str | None = None,
    ) -> None:
        super().__init__(reason or f"throttled by {downstream or 'a downstream'}")
        self.reason = str(self)
        self.downstream = downstream
        self.retry_after = retry_after
        self.scope = scope
