"""Calls of callers with rights of their own, as a token has: the right that each needs. Calls that are not listed are
for none."""

from __future__ import annotations

from typing import Any, NamedTuple

from .errors import InvalidRequest
from .grants import GrantedRights
from .rights import Need, sentence


class TokenCall(NamedTuple):
    """The action that a call is. With `scoped` it is of the functions that it names, which whoever answers it looks at;
    else of every one."""

    action: str
    scoped: bool = False


CALLS: dict[str, TokenCall] = {
    "Scheduler/Execute": TokenCall("submit", scoped=True),
    "Scheduler/Explain": TokenCall("read"),
    "Scheduler/Inspect": TokenCall("read"),
    "Scheduler/Record": TokenCall("administer"),
    "Gateway/Submit": TokenCall("submit", scoped=True),
    "Gateway/Status": TokenCall("read", scoped=True),
    "Gateway/Result": TokenCall("read", scoped=True),
    "Gateway/Find": TokenCall("read", scoped=True),
    "Gateway/Cancel": TokenCall("operate", scoped=True),
    "Gateway/Reschedule": TokenCall("operate", scoped=True),
    "Gateway/Peek": TokenCall("read", scoped=True),
    "Gateway/RegisterFunctions": TokenCall("run", scoped=True),
    "Gateway/ListFunctions": TokenCall("read", scoped=True),
    "Gateway/PutSchedule": TokenCall("operate", scoped=True),
    "Gateway/ListSchedules": TokenCall("read", scoped=True),
    "Gateway/ChangeSchedule": TokenCall("operate", scoped=True),
    "Gateway/Watch": TokenCall("read"),
    "Metrics/Scrape": TokenCall("read"),
    "Operators/Call limits.set_gate": TokenCall("operate", scoped=True),
    "Operators/Call limits.set_quota": TokenCall("operate", scoped=True),
    "Operators/Call limits.apply_quotas": TokenCall("administer"),
    "Operators/Call limits.quota_changes": TokenCall("read"),
    "Operators/Call limits.limits_in_force": TokenCall("read"),
    "Operators/Call jobs.create_job": TokenCall("submit", scoped=True),
    "Operators/Call jobs.add_to_job": TokenCall("submit", scoped=True),
    "Operators/Call jobs.seal_job": TokenCall("submit", scoped=True),
    "Operators/Call jobs.job": TokenCall("read", scoped=True),
    "Operators/Call jobs.jobs": TokenCall("read", scoped=True),
    "Operators/Call job_pages.job_page": TokenCall("read", scoped=True),
    "Operators/Call jobs.job_results": TokenCall("read", scoped=True),
    "Operators/Call job_pages.gathered": TokenCall("run", scoped=True),
    "Operators/Call jobs.change_job": TokenCall("operate", scoped=True),
    "Operators/Call jobs.retry_job": TokenCall("operate", scoped=True),
    "Operators/Call job_audits.audit_job": TokenCall("read", scoped=True),
    "Operators/Call letters.dead_letters": TokenCall("read", scoped=True),
    "Operators/Call letters.count_dead": TokenCall("read", scoped=True),
    "Operators/Call letters.dead_letter": TokenCall("read", scoped=True),
    "Operators/Call letters.redrive": TokenCall("operate", scoped=True),
    "Operators/Call letters.purge": TokenCall("operate", scoped=True),
    "Operators/Call overview.overview": TokenCall("read"),
    "Operators/Call replays.replays": TokenCall("read"),
    "Operators/Call replays.start_replay": TokenCall("operate"),
    "Operators/Call replays.change_replay": TokenCall("operate"),
    "Operators/Call tailers.pause_tailer": TokenCall("operate"),
    "Operators/Call tailers.seek_tailer": TokenCall("operate"),
    "Operators/Call tailers.forget_tailer": TokenCall("operate"),
    "Operators/Call tailers.audit": TokenCall("read"),
    "Operators/Call tailers.drops": TokenCall("read"),
    "Operators/Call usage.usage": TokenCall("read"),
    "Operators/Call acts.acts": TokenCall("administer"),
    "Operators/Call files.reload": TokenCall("administer"),
    "Operators/Call tokens.create_token": TokenCall("administer"),
    "Operators/Call tokens.tokens": TokenCall("administer"),
    "Operators/Call tokens.revoke_token": TokenCall("administer"),
}


def need_of(action: str, subject: Any) -> Need:
    """The right that an action on something needs: on every value of each field that it leaves open."""
    return Need(action, *(getattr(subject, name, "") for name in Need._fields[1:]))


def need_to_limit(action: str, subject: Any) -> Need:
    """The right that a gate or a quota needs. What stands on a tenant needs a right above that tenant, so that nobody
    lifts its own limits; a reserve or a weight takes from all others, so it needs a right on everything."""
    if getattr(subject, "reserve", 0) or getattr(subject, "weight", 0):
        return Need(action)
    return need_of(action, subject)._replace(tenant="")


def check_call(granted: GrantedRights, name: str) -> None:
    """Raises InvalidRequest for a call that these rights are not enough for, whatever it is about."""
    call = CALLS.get(name)
    if call is None:
        raise InvalidRequest(f"{granted.name} may not call {name}: that is for parts of the fleet")
    need = Need(call.action)
    if not (granted.may_some(call.action) if call.scoped else granted.may(need)):
        raise InvalidRequest(sentence(granted.name, granted.rights, need))
