"""The report of a run: one JSON object, or a table for people."""

from __future__ import annotations

import bisect
from typing import Any

from rich.console import Console
from rich.table import Table

from ..percentiles import percentile
from .run import FaultRun

#: Laws whose count must be zero, by their name in the figures.
LAWS = {
    "lost": "lost",
    "overlaps": "overlaps",
    "early": "early",
    "duplicates_unexplained": "unexplained",
    "fences": "fences",
    "dead_unexpected": "dead",
    "strange": "strange",
    "damaged": "damaged",
    "began_anew": "began_anew",
    "kept_for_strangers": "kept_for_strangers",
}
#: Laws of a group whose offsets are seen from outside, likewise.
GROUP_LAWS = {
    "committed_past_unfinished": "passed",
    "committed_backwards": "backwards",
    "not_committed_in_the_end": "behind",
    "more_duplicates_than_in_flight": "excess",
}


def figures(run: FaultRun) -> dict[str, Any]:
    """The figures of a run."""
    verdict = run.verdict
    return {
        "items": verdict.items,
        "faults": run.steps,
        **{name: verdict.count(law) for name, law in LAWS.items()},
        **({name: verdict.count(law) for name, law in GROUP_LAWS.items()} if run.more else {}),
        **run.more,
        "duplicates": verdict.duplicates,
        "duplicates_starved": verdict.starved,
        "explicable_share": round(verdict.explicable / max(1, verdict.completed + verdict.dead), 3),
        "duplicates_of_a_fault_max": max(verdict.repeated, default=0),
        "attempts_charged": verdict.charged,
        "recovery_p99_s": round(verdict.recovery(0.99), 3),
        "recovery_max_s": round(verdict.recovery(1.0), 3),
        "recovery_bound_s": round(run.bound, 3),
        "starts": verdict.starts,
        "completed": verdict.completed,
        "dead_letters": verdict.dead,
        "by_kind": by_kind(run),
        "skipped": run.skipped,
        "not_put_in": run.failed,
        "seconds": round(run.seconds, 1),
        "seed": run.seed,
    }


def by_kind(run: FaultRun) -> dict[str, dict[str, float]]:
    """Figures for each kind of fault: its count, how items recovered, and findings after it and before the next."""
    verdict = run.verdict
    kinds: dict[str, dict[str, float]] = {}
    recoveries: dict[str, list[float]] = {}
    for fault, found, repeated in zip(run.faults, verdict.recoveries, verdict.repeated, strict=False):
        none = {"faults": 0, "in_flight": 0, "duplicates": 0, "recovery_p99_s": 0.0}
        kinds.setdefault(fault.kind, none)["faults"] += 1
        kinds[fault.kind]["in_flight"] += len(found)
        kinds[fault.kind]["duplicates"] += repeated
        recoveries.setdefault(fault.kind, []).extend(found)
    for kind, found in recoveries.items():
        kinds[kind]["recovery_p99_s"] = round(percentile(found, 0.99), 3)
    order = sorted(run.faults, key=lambda fault: fault.begin)
    begins = [fault.begin for fault in order]
    for finding in verdict.findings:
        before = bisect.bisect_right(begins, finding.at) - 1
        if before >= 0:
            row = kinds[order[before].kind]
            row[finding.law] = row.get(finding.law, 0) + 1
    return dict(sorted(kinds.items()))


def broken(run: FaultRun, *, attempts: bool = False) -> list[str]:
    """Laws that did not hold, for people; empty: all held. `attempts`: charged attempts break one too."""
    found = figures(run)
    wrong = [f"{name} {found[name]}" for name in (*LAWS, *GROUP_LAWS) if found.get(name)]
    if found["recovery_p99_s"] > found["recovery_bound_s"]:
        wrong.append(f"recovery p99 {found['recovery_p99_s']} s, more than {found['recovery_bound_s']} s")
    if run.failed:
        wrong.append(f"{len(run.failed)} submissions given up: {run.failed[0]}")
    if attempts and found["attempts_charged"]:
        wrong.append(f"attempts charged {found['attempts_charged']}")
    return wrong


def show(run: FaultRun, *, attempts: bool = False) -> None:
    """Shows a table of the kinds, the findings, and whether all laws held."""
    console = Console()
    table = Table("fault", "times", "in flight", "duplicates", "recovery p99, s", "found")
    for kind, row in by_kind(run).items():
        rest = {
            name: int(count)
            for name, count in row.items()
            if name not in ("faults", "in_flight", "duplicates", "recovery_p99_s")
        }
        text = ", ".join(f"{name} {count}" for name, count in rest.items())
        counts = (f"{row[name]:g}" for name in ("faults", "in_flight", "duplicates"))
        table.add_row(kind, *counts, f"{row['recovery_p99_s']:.2f}", text)
    console.print(table)
    for kind, why in run.skipped.items():
        console.print(f"left out: {kind} ({why})")
    for finding in run.verdict.findings[:20]:
        console.print(f"[red]{finding.law}[/] {finding.id}: {finding.detail}", highlight=False)
    found = figures(run)
    console.print(
        f"{found['items']:,} items, {found['faults']} faults, {found['seconds']:.0f} s, seed {run.seed}: "
        f"lost {found['lost']}, overlaps {found['overlaps']}, early {found['early']}, "
        f"duplicates {found['duplicates']} (unexplained {found['duplicates_unexplained']}, "
        f"for want of a processor {found['duplicates_starved']}; a fault held "
        f"{100 * found['explicable_share']:.0f} % of all that ended), "
        f"attempts charged {found['attempts_charged']}, "
        f"recovery p99 {found['recovery_p99_s']:.2f} s of {found['recovery_bound_s']:.2f} s",
        highlight=False,
    )
    for name in (*GROUP_LAWS, *run.more) if run.more else ():
        console.print(f"{name.replace('_', ' ')}: {found[name]}", highlight=False)
    wrong = broken(run, attempts=attempts)
    console.print("[red]broken: " + "; ".join(wrong) + "[/]" if wrong else "[green]every law held[/]")
