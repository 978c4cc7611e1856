"""Calls of each role: the parts of a fleet that may make each call to another part. Calls that are not listed are for
nobody."""

from __future__ import annotations

from .caller import Caller

#: A node may be a whole platform (`tailrace up`), with a scheduler and a worker that have its certificate.
_CLIENTS = frozenset({"client", "node", "operator", "worker"})
_WORKERS = frozenset({"node", "worker"})
_SCHEDULERS = frozenset({"node", "scheduler"})
_OPERATORS = frozenset({"operator"})
_SOURCES = frozenset({"node", "tailer"})
_PARTS = frozenset({"gateway", "node", "scheduler", "tailer", "worker"})
_ALL = _PARTS | _CLIENTS

#: The changes of a control store, which only gateways make.
_CHANGES = ("put_gate", "end_gates", "put_quotas", "register", "put_token", "remove_token", "belong")
#: Calls there that gateways alone make besides.
_ACTS = ("begin_act", "end_act", "acts", "forget_acts", "put_order")

#: Calls of submitters on jobs.
_JOBS = (
    "create_job",
    "add_to_job",
    "seal_job",
    "job",
    "jobs",
    "job_results",
    "change_job",
    "retry_job",
)

#: Service and method, of services of operators and stores with `PORT.METHOD` behind it, → the roles that may. A service
#: alone stands for its other methods.
CALLS: dict[str, frozenset[str]] = {
    "Scheduler/AttachWorker": _WORKERS,
    "Scheduler/AttachTailer": _SOURCES,
    "Scheduler/Adopt": _SOURCES,
    "Scheduler/Execute": frozenset({"client", "operator"}),
    "Scheduler/Inspect": _OPERATORS | {"gateway", "node"},
    "Scheduler/Explain": frozenset({"client", "operator", "gateway", "node"}),
    "Scheduler/Record": _OPERATORS,
    "Gateway/Submit": _CLIENTS,
    "Gateway/Submissions": _CLIENTS,
    "Gateway/Status": _CLIENTS,
    "Gateway/Result": _CLIENTS,
    "Gateway/Cancel": _CLIENTS,
    "Gateway/Find": _CLIENTS,
    "Gateway/Peek": _CLIENTS,
    "Gateway/Reschedule": _CLIENTS,
    "Gateway/RegisterFunctions": _WORKERS,
    "Gateway/ListFunctions": _ALL,
    "Gateway/Watch": _ALL,
    "Gateway/Confirm": _SCHEDULERS,
    "Gateway/PutSchedule": _CLIENTS,
    "Gateway/ListSchedules": _CLIENTS,
    "Gateway/ChangeSchedule": _CLIENTS,
    "Metrics/Scrape": frozenset({"client", "node", "operator"}),
    "Delay/Park": _SOURCES,
    "Delay/Depth": _SOURCES | _OPERATORS,
    "Stores": _SOURCES | {"gateway"},
    **{f"Stores/Call control.{name}": frozenset({"gateway", "node"}) for name in (*_CHANGES, *_ACTS)},
    "Stores/Call queue.tell_again": frozenset({"gateway", "node"}),
    "Operators": _OPERATORS,
    **{f"Operators/Call jobs.{name}": _CLIENTS | _OPERATORS for name in _JOBS},
    "Operators/Call job_pages.job_page": _CLIENTS | _OPERATORS,
    "Operators/Call job_pages.gathered": _WORKERS,
    "Operators/Call overview.tell_failure": _PARTS,
    "Operators/Call overview.tell_start_delays": _SCHEDULERS,
    "Operators/Call usage.tell_usage": _SCHEDULERS,
}


def refusal(caller: Caller, call: str) -> str:
    """The reason a caller may not make a call (`Scheduler/AttachWorker`, `Operators/Call limits.set_gate`); empty: it
    may."""
    service = call.partition("/")[0]
    method = call.partition(" ")[0]
    may = next((CALLS[name] for name in (call, method, service) if name in CALLS), frozenset())
    if caller.role in may:
        return ""
    who = f"only {_listed(sorted(may))} may" if may else "nobody may"
    return (
        f"{caller} may not call {call}: {who}. Its certificate says the role; `tailrace auth issue` makes another one"
    )


def _listed(roles: list[str]) -> str:
    return roles[0] if len(roles) == 1 else f"{', '.join(roles[:-1])} and {roles[-1]}"
