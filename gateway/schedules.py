"""`schedules.yaml`: schedules that the gateway makes equal to the file at each start.

    schedules:
      nightly-report: {function: make_report, cron: "0 3 * * *", timezone: Europe/Berlin}
      heartbeat: {function: ping, every: 30s, arguments: {host: db1}}

A schedule that is no longer in the file is removed; schedules made by `tailrace schedule add` stay.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..foundation.config import Name, Seconds
from ..model.errors import TailraceError
from ..model.priority import Priority
from ..model.schedule import (
    MOST_CATCH_UP,
    CatchUp,
    Origin,
    Overlap,
    Schedule,
    check_schedule,
    usual_catch_up,
)
from ..sdk.payload import encode_arguments
from ..stores.schedules.timetable import check_cron, moment_in, zone_of

#: The author of the schedules of the file.
FILE = "schedules.yaml"


class ScheduleConfig(BaseModel):
    """One schedule. Exactly one of cron, every and at gives its times.

    cron         five fields, or six of which the first is seconds, or @daily and the like; in `timezone`
    every        time between runs, counted from `starts`, else from when the schedule was made
    at           once; a time such as 2026-12-24T18:00, in `timezone` unless it says its offset
    timezone     an IANA name (default UTC)
    arguments    the arguments of each run
    priority     default: the function's own
    overlap      for a run that is due while the one before runs: skip (default: it is passed over), queue (it waits) or
                 allow (both run)
    catch_up     for runs missed by more than `grace` (60 s): skip (default), latest (default with `at`) or all
    catch_up_max most runs that are caught up, the newest (100)
    jitter       each run is later by some part of it, always the same for the same instant (0)
    starts, until   no run before, or after
    max_runs     number of runs after which the schedule is over; 0: no limit
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    function: Name
    cron: str = ""
    every: Seconds = 0.0
    at: str = ""
    timezone: str = "UTC"
    arguments: dict[str, Any] = Field(default_factory=dict)
    priority: str = ""
    collection: str = ""
    tenant: str = ""
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp | None = None
    catch_up_max: int = Field(default=100, ge=1, le=MOST_CATCH_UP)
    grace: Seconds = 60.0
    jitter: Seconds = 0.0
    starts: str = ""
    until: str = ""
    max_runs: int = Field(default=0, ge=0)

    @field_validator("cron")
    @classmethod
    def _cron_is_one(cls, cron: str) -> str:
        if cron:
            _said(lambda: check_cron(cron), "cron: ")
        return cron

    @field_validator("timezone")
    @classmethod
    def _zone_is_known(cls, timezone: str) -> str:
        _said(lambda: zone_of(timezone))
        return timezone

    @field_validator("priority")
    @classmethod
    def _priority_is_a_level(cls, priority: str) -> str:
        if priority:
            _said(lambda: Priority.parse(priority))
        return priority

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        _said(lambda: check_schedule(self.schedule("x")), "x: ")
        return self

    def schedule(self, name: str) -> Schedule:
        """The schedule, as one of the file's. Raises InvalidRequest, InvalidPayload."""
        said = {
            field: getattr(self, field)
            for field in type(self).model_fields
            if field not in ("at", "starts", "until", "arguments", "catch_up")
        }
        for field in ("at", "starts", "until"):
            said[field] = moment_in(field, getattr(self, field), self.timezone)
        return Schedule(
            name,
            **said,
            payload=encode_arguments(None, self.arguments),
            catch_up=usual_catch_up(said["at"]) if self.catch_up is None else self.catch_up,
            created_by=FILE,
            origin=Origin.FILE,
        )


class SchedulesConfig(BaseModel):
    """The schedules, by name; the gateway makes its schedules equal to these at each start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schedules: dict[Name, ScheduleConfig] = Field(default_factory=dict)

    def kept(self) -> list[Schedule]:
        """The schedules, by name."""
        return [config.schedule(name) for name, config in sorted(self.schedules.items())]


def _said(check: Any, prefix: str = "") -> None:
    try:
        check()
    except TailraceError as error:
        raise ValueError(str(error).removeprefix(prefix)) from None
