"""Calls of the schema's functions for jobs; S. stands for the schema. The arguments are described with the functions
(stores/postgres/migrations/0022_jobs.sql)."""

from __future__ import annotations

CREATE = (
    "SELECT outcome, told FROM S.job_create(%s::bigint, %s::text, %s::text, %s::text, %s::text, %s::bigint, %s::text,"
    " %s::text, %s::int, %s::text[], %s::int[], %s::int[], %s::bytea[], %s::bytea[], %s::int[], %s::boolean[],"
    " %s::boolean[], %s::boolean[], %s::int[], %s::int[], %s::int, %s::int, %s::bytea, %s::bytea,"
    " %s::int[], %s::int)"
)
ADD = (
    "SELECT outcome, told, items, lane, moment FROM S.job_add(%s::bigint, %s::text, %s::text, %s::text,"
    " %s::bigint[], %s::bytea[], %s::text[], %s::text[], %s::bigint, %s::bigint, %s::boolean)"
)
KEPT = "SELECT coalesce(sum(items), 0)::bigint FROM S.counts WHERE state = 102"
OPEN = "SELECT count(*) FROM S.job_trees WHERE complete_at IS NULL"
# Rooms, by the tenants of trees, which are those of their first jobs.
_OF_TREES = (
    "SELECT k.tenant, sum(h.n)::bigint FROM ({}) AS h JOIN S.jobs AS j ON j.tree = h.tree AND j.place = 0"
    " JOIN S.kinds AS k ON k.kind = j.kind GROUP BY 1"
)
HELD = {
    "open": _OF_TREES.format("SELECT tree, 1 AS n FROM S.job_trees WHERE complete_at IS NULL"),
    "kept": _OF_TREES.format(
        "SELECT o.tree, sum(b.size) AS n FROM (SELECT item, octet_length(result) AS size FROM S.job_results"
        " UNION ALL SELECT item, octet_length(payload) FROM S.job_payloads) AS b"
        " JOIN S.job_items AS i ON i.item = b.item JOIN S.jobs AS o ON o.job = i.job GROUP BY 1"
    ),
}
SEAL = "SELECT outcome, told FROM S.job_seal(%s::text, %s::text)"
CHANGE = "SELECT word FROM S.job_change(%s::text, %s::text, %s::text) AS word"
HOLD = "SELECT word FROM S.job_hold(%s::text, %s::text, %s::text) AS word"
RETRY = (
    "SELECT outcome, items, told FROM S.job_retry(%s::bigint, %s::text, %s::text, %s::text, %s::int, %s::bigint, true)"
)
REDRIVE = (
    "SELECT former, item, stands, complete, ends, told, lane, moment"
    " FROM S.job_redrive(%s::bigint, %s::bigint[], %s::bigint[])"
)
CANCEL_OVERDUE = "SELECT ended FROM S.job_cancel_overdue(%s::bigint, %s::bigint, %s::text, %s::int) AS ended"
FORGET = "SELECT gone FROM S.job_forget(%s::bigint, %s::int) AS gone"
TAKE_EVENTS = "SELECT number, what, tree, payload FROM S.job_events_take(%s::bigint, %s::int, %s::bigint)"
FORGET_EVENTS = "SELECT gone FROM S.job_events_forget(%s::bigint[]) AS gone"
NOW = "SELECT S.now_micros(%s::bigint)"

FOLD = (
    "SELECT job, tree, name, prefix, suffix, most_bytes, gather, each, sealed, pending, looked, complete, folds,"
    " parents, open_parents, policy, most_failed, tree_failed, ending, paused, upto"
    " FROM S.job_fold(%s::int, %s::bigint)"
)
DECIDE = "SELECT done FROM S.job_decide(%s::bigint, %s::bigint[], %s::bigint[], %s::text[]) AS done"
END_TREE = "SELECT new FROM S.job_end_tree(%s::bigint, %s::text, %s::text) AS new"
CANCEL_SOME = "SELECT gone FROM S.job_cancel_some(%s::bigint, %s::bigint, %s::int) AS gone"
WAKE_SOME = "SELECT woken FROM S.job_wake_some(%s::bigint, %s::bigint, %s::int) AS woken"
EXPAND = (
    "SELECT made FROM S.job_expand(%s::bigint, %s::bigint, %s::bigint[], %s::bigint[], %s::bigint[], %s::boolean[],"
    " %s::bigint[], %s::int[], %s::bytea[]) AS made"
)
GATHER = "SELECT made FROM S.job_gather(%s::bigint, %s::bigint, %s::bigint) AS made"
GATHERED = "SELECT job FROM S.job_gathered(%s::bigint, %s::bigint) AS job"
APART = "SELECT origin, next, result FROM S.job_apart(%s::bigint, %s::int, %s::bigint)"
