"""Alerts for an operator, and how long the backlog will take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert: a `code` (gateway/rules/alerts.py has them all), its subject, `since` when (wall clock seconds; since
    it was first seen, where only that is known), the fact, and the advice."""

    code: str
    subject: str
    since: float
    what: str
    todo: str


@dataclass(slots=True)
class LevelOverview:
    """One priority against its service level, queued work only. Of the longest wait of a due item its seconds, how many
    are allowed, and whose it is; of the highest attempt of a live item the same. `beyond`: how many functions are past
    either."""

    priority: str
    waited: float = 0.0
    waited_allowed: float = 0.0
    waited_by: str = ""
    attempts: int = 0
    attempts_allowed: int = 0
    attempts_by: str = ""
    beyond: int = 0


@dataclass(slots=True)
class ObjectiveOverview:
    """One objective (`start_delay` or `accepted`) of a function and priority: the share that is to meet it, the share
    that did in the last minutes, of how many `items`; `allowed`: the start delay in seconds that counts as met."""

    objective: str
    function: str
    priority: str
    target: float
    observed: float
    items: int
    allowed: float = 0.0


@dataclass(slots=True)
class Backlog:
    """A backlog: the items that wait in one place (the queue, or a tailer's source), by how much a second it grew over
    the last `watched` seconds (below 0: it shrinks), and in how many seconds it is empty if that goes on; below 0: not
    foreseeable."""

    name: str
    items: int
    growth: float = 0.0
    watched: float = 0.0
    empty_in: float = -1.0
