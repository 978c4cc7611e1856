"""The calls that are acts of operators (audit trail), and the record of each: THE rule, as one table. Other calls only
look, or are work that programs submit."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...model.act import DONE
from ...model.gate import Gate
from ...model.limits import Quota, Snapshot
from ...model.token import Token
from .act_states import (
    letters_json,
    level,
    moment,
    replay_json,
    row_json,
    schedule_json,
    to_json,
    tree_json,
    workloads_json,
)

#: Most ids and quotas that a record names.
NAMED = 20


class ActOrder(NamedTuple):
    """An act that is about to begin, with fields as in Act. `who` is the name in the order itself, which counts before
    the caller's own name for itself."""

    what: str
    on: str = ""
    who: str = ""
    why: str = ""
    before: str = ""
    after: str = ""


class StateBefore(NamedTuple):
    """The state before an act: gates, quotas and tokens, and the subject as looked up (`gateway/act_subjects.py`);
    None: there is none."""

    limits: Snapshot
    subject: Any = None


def act_of(call: str, arguments: Mapping[str, Any], state: StateBefore) -> ActOrder | None:
    """The act of a call (`limits.set_gate`, `Cancel`) with these arguments; None: the call is no act."""
    act = ACTS.get(call)
    return None if act is None else act(arguments, state)


def _gate(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    gate: Gate = arguments["gate"]
    before = next((each for each in state.limits.gates if each.key == gate.key), None)
    after = "" if gate.action == "resume" else fields_json(gate, "who", "why", "version")
    return ActOrder(f"gate {gate.action}", gate.what, gate.who, gate.why, fields_json(before, "version"), after)


def _quota(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    quota: Quota = arguments["quota"]
    before = next((each for each in state.limits.quotas if each.key == quota.key), None)
    return ActOrder("quota set", _key(quota), "", "", fields_json(before), fields_json(quota))


def _quotas(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    change = arguments["change"]
    former, wanted = ({each.key: each for each in quotas} for quotas in (state.limits.quotas, change.quotas))
    changed = [key for key in {**former, **wanted} if former.get(key) != wanted.get(key)]
    before, after = ([found[key] for key in changed if key in found] for found in (former, wanted))
    on = listed(_key(former.get(key) or wanted[key]) for key in changed) or "nothing"
    return ActOrder("quota apply", on, change.who, change.why, _all_said(before), _all_said(after))


def _redrive(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    return _letters("dead redrive", arguments, state)


def _purge(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    return _letters("dead purge", arguments, state)


def _letters(what: str, arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    before = letters_json(state.subject) if state.subject else ""
    return ActOrder(what, fields_json(arguments["which"]) or "all dead letters", why=arguments["why"], before=before)


def _seek(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder | None:
    seek = arguments["seek"]
    if seek.dry_run:
        return None
    return ActOrder("tailer seek", seek.tailer, seek.who, seek.why, "", fields_json(seek, "tailer", "who", "why"))


def _forget_tailer(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    order = arguments["order"]
    return ActOrder("tailer forget", order.tailer, order.who, order.why)


def _replay(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder | None:
    order = arguments["order"]
    if order.dry_run:
        return None
    return ActOrder("replay start", order.tailer, order.who, order.why, "", fields_json(order, "tailer", "who", "why"))


def _change_replay(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    before = replay_json(state.subject) if state.subject else ""
    return ActOrder(f"replay {arguments['what']}", str(arguments["number"]), why=arguments["why"], before=before)


def _create_token(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    order = arguments["order"]
    return ActOrder("auth token create", order.name, order.who, order.why, "", fields_json(order, "name", "who", "why"))


def _revoke_token(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    name = arguments["name"]
    known = next((token for token in state.limits.tokens if token.name == name), None)
    before = "" if known is None else to_json(_token(known))
    return ActOrder("auth token revoke", name, why=arguments["why"], before=before)


def _token(token: Token) -> dict[str, Any]:
    moments = {"until": moment(token.until), "created": moment(token.created)}
    return {"rights": [str(right) for right in token.rights], **moments, "created_by": token.created_by}


def _reload(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    return ActOrder("reload", "the files of the gateway's process", why=arguments["why"])


def _job(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    return _of_job(arguments["what"], arguments, state)


def _retry_job(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    return _of_job("retry", arguments, state, f"job {arguments['id']}")


def _of_job(what: str, arguments: Mapping[str, Any], state: StateBefore, after: str = "") -> ActOrder:
    before = tree_json(state.subject) if state.subject else ""
    return ActOrder(f"job {what}", arguments["tree"], arguments["who"], arguments["why"], before, after)


def _cancel(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    request = arguments["request"]
    return ActOrder("cancel", listed(request.ids), request.who, request.why, workloads_json(state.subject or ()))


def _reschedule(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    request = arguments["request"]
    shown: Mapping[str, Callable[[Any], Any]] = {"at": moment, "delay": float, "priority": level}
    wanted = {name: form(getattr(request, name)) for name, form in shown.items() if request.HasField(name)}
    before = workloads_json(state.subject or ())
    return ActOrder("reschedule", request.id, request.who, request.why, before, to_json(wanted))


def _put_schedule(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    request = arguments["request"]
    after = schedule_json(request.schedule)
    before = row_json(state.subject)
    return ActOrder("schedule set", request.schedule.name, request.schedule.created_by, request.why, before, after)


def _change_schedule(arguments: Mapping[str, Any], state: StateBefore) -> ActOrder:
    request = arguments["request"]
    return ActOrder(f"schedule {request.what}", request.name, request.who, request.why, row_json(state.subject))


ACTS: Mapping[str, Callable[[Mapping[str, Any], StateBefore], ActOrder | None]] = {
    "Cancel": _cancel,
    "Reschedule": _reschedule,
    "PutSchedule": _put_schedule,
    "ChangeSchedule": _change_schedule,
    "files.reload": _reload,
    "jobs.change_job": _job,
    "jobs.retry_job": _retry_job,
    "letters.redrive": _redrive,
    "letters.purge": _purge,
    "limits.set_gate": _gate,
    "limits.set_quota": _quota,
    "limits.apply_quotas": _quotas,
    "replays.start_replay": _replay,
    "replays.change_replay": _change_replay,
    "tailers.pause_tailer": _gate,
    "tailers.seek_tailer": _seek,
    "tailers.forget_tailer": _forget_tailer,
    "tokens.create_token": _create_token,
    "tokens.revoke_token": _revoke_token,
}


def outcome_of(call: str, answer: Any) -> str:
    """The outcome of an act that was answered, for people."""
    said_of = OUTCOMES.get(call)
    return (said_of(answer) if said_of is not None else "") or DONE


def _moved(answer: Any) -> str:
    return listed(f"{each.partition or 'checkpoint'}: {each.before} → {each.after}" for each in answer)


def _cancelled(answer: Any) -> str:
    outcomes = list(answer.outcomes)
    return listed(f"{outcomes.count(each)} {each}" for each in dict.fromkeys(outcomes))


OUTCOMES: Mapping[str, Callable[[Any], str]] = {
    "Cancel": _cancelled,
    "Reschedule": lambda answer: str(answer.outcome),
    "files.reload": lambda answer: listed(f"{each.file}: {each.change}" for each in answer) or "nothing was new",
    "jobs.change_job": str,
    "tailers.seek_tailer": _moved,
    "tailers.forget_tailer": lambda log: f"the retention of {log} waits for it no more" if log else "forgotten",
}


def fields_json(value: Any, *but: str) -> str:
    """An order, a gate or a quota as JSON, without the fields `but` and without defaults; empty: nothing is left."""
    if value is None:
        return ""
    given, usual = _fields(value)
    empty: list[Any] = ["", 0, None, (), []]
    shown = {name: each for name, each in given.items() if name not in but and each != usual.get(name, "")}
    shown = {name: each for name, each in shown.items() if name in usual or each not in empty}
    return json.dumps(shown, ensure_ascii=False, default=str) if shown else ""


def _fields(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a record, and the defaults of those that have one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value), {
            each.name: each.default for each in dataclasses.fields(value) if each.default is not dataclasses.MISSING
        }
    return dict(value._asdict()), value._field_defaults


def _all_said(quotas: Sequence[Quota]) -> str:
    return listed(fields_json(each) for each in quotas)


def _key(quota: Quota) -> str:
    return fields_json(
        Quota(quota.function, collection=quota.collection, tenant=quota.tenant, downstream=quota.downstream)
    )


def listed(texts: Iterable[str]) -> str:
    """The first texts with commas between, and the number of the others."""
    named = list(texts)
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more
