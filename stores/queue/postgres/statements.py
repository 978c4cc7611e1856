"""Calls of the schema's functions; S. stands for the schema. The arguments are described with the functions."""

from __future__ import annotations

from typing import Final

KINDS = "SELECT * FROM S.queue_kinds(%s::text[], %s::int[], %s::text[], %s::text[])"
LEARN = (
    "SELECT k.kind, k.lane, k.tenant, l.function, l.priority, l.collection FROM S.kinds AS k"
    " JOIN S.lanes AS l USING (lane) WHERE k.kind > %s ORDER BY k.kind"
)
SUBMIT = (
    "SELECT item, first FROM S.queue_submit(%s::bigint, %s::bigint[], %s::int[], %s::int[], %s::bigint[], %s::int[],"
    " %s::smallint[], %s::bytea[], %s::bigint[], %s::text[], %s::text[], %s::float8[], %s::bigint[], %s::text[],"
    " %s::text[])"
)
SUBMIT_WITH_CALLBACKS = (
    SUBMIT.replace("queue_submit", "queue_submit_with_callbacks").removesuffix(")")
    + ", %s::bigint[], %s::int[], %s::int[], %s::bytea[], %s::bytea[])"
)
LOOK = "SELECT lane, earliest, moment FROM S.queue_look(%s::bigint, %s::int[], %s::bigint[], %s::int[], %s::boolean[])"
#: Index of the look's time in its rows.
LOOKED_AT: Final = 2
TURNS = "SELECT S.queue_turns()"
STOCKED = "SELECT lane FROM S.queue_stocked(%s::int[]) AS lane"
#: Both in one statement: rows of other lanes, in which items wait, have no time.
LOOK_AROUND = f"{LOOK} UNION ALL SELECT lane, NULL, NULL FROM S.queue_stocked(%s::int[]) AS lane"
CLAIM = (
    "SELECT id, kind, attempts, crashes, payload, key, headers, expires_at, progress, due, fence, number, moment"
    " FROM S.queue_claim(%s::bigint, %s::int[], %s::int[], %s::bigint[], %s::int[], %s::int[], %s::int[], %s::int[],"
    " %s::int, %s::bigint, %s::bigint, %s::text)"
)
#: Indexes of the columns of a claimed row; the claim's number and the time follow the fence. A row whose id is NO_ITEM
#: tells whose turn was last: `kind` is that kind, and `attempts` is the lane.
NO_ITEM: Final = -1
ID: Final = 0
KIND: Final = 1
ATTEMPTS: Final = 2
CRASHES: Final = 3
PAYLOAD: Final = 4
KEY: Final = 5
HEADERS: Final = 6
EXPIRES_AT: Final = 7
PROGRESS: Final = 8
DUE_AT: Final = 9
FENCE: Final = 10
#: Both in one transaction. Rows of the submission have values only in the first two columns, rows of the claim only in
#: the others.
SUBMIT_AND_CLAIM = (
    "SELECT item, first, id, kind, attempts, crashes, payload, key, headers, expires_at, progress, due, fence, number,"
    " moment FROM S.queue_submit_and_claim("
    + SUBMIT.partition("(")[2].removesuffix(")")
    + ", "
    + CLAIM.partition("(%s::bigint, ")[2]
)
#: Index of the first column of a claimed row in these rows.
CLAIMED: Final = 2
TIMELINE = "SELECT S.this_timeline()"
END_LEASES = "SELECT moment, soonest, claims_ended, troubles FROM S.queue_end_leases(%s::bigint, %s::boolean)"
RENEW = "SELECT id, cancel, claim FROM S.queue_renew(%s::bigint, %s::bigint[], %s::bigint, %s::bigint, %s::smallint)"
SETTLE = (
    "SELECT refused, again, fed, moment FROM S.queue_settle(%s::bigint, %s::bigint, %s::bigint[], %s::bigint[],"
    " %s::bigint[], %s::smallint[], %s::bigint[], %s::int[], %s::int[], %s::int[], %s::text[], %s::text[], %s::text[],"
    " %s::bigint[], %s::bytea[])"
)
#: The same, with the results of which no item can be made: read from the rows, so that a repetition tells them too.
SETTLE_RESULTS = (
    SETTLE.replace("refused, again, fed, moment", "s.refused, s.again, s.fed, s.moment, u.items, u.whys")
    + " AS s, LATERAL S.job_unfit_told(%s::bigint, %s::bigint[], s.refused) AS u"
)
#: Plain successes of several claims, in the schema's order of locks: claims that are over, all keys, then the items of
#: one claim after the other.
SUCCEED = (
    "WITH gone AS MATERIALIZED (DELETE FROM ONLY S.claims WHERE number = ANY (%s::bigint[]) RETURNING number),"
    " locked AS MATERIALIZED (SELECT keyed FROM S.lock_keys_of("
    "CASE WHEN (SELECT count(*) FROM gone) >= 0 THEN %s::bigint[] END) AS keyed)"
    " SELECT s.refused, s.again, s.fed, s.moment FROM (SELECT count(*) AS n FROM locked) AS l,"
    " unnest(%s::bigint[], %s::text[]) WITH ORDINALITY AS g (fence, ids, place),"
    " LATERAL S.queue_settle(%s::bigint, CASE WHEN l.n > 0 THEN g.fence END, g.ids::bigint[],"
    " '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}') AS s ORDER BY g.place"
)
CANCEL = "SELECT answers, again FROM S.queue_cancel(%s::bigint, %s::bigint[])"
HELD = (
    "SELECT k.tenant, sum(l.n)::bigint FROM (SELECT kind, count(*) AS n FROM S.tasks WHERE state < 10 GROUP BY kind)"
    " AS l JOIN S.kinds AS k USING (kind) GROUP BY 1"
)
DUE = "SELECT function, items FROM S.queue_due(%s::bigint, %s::int) WHERE items > 0"
AGEING = "SELECT function, priority, waited, attempts FROM S.queue_ageing(%s::bigint) WHERE waited > 0 OR attempts > 0"
NOW = "SELECT S.now_micros(%s::bigint)"
SWEEP = "SELECT gone FROM S.queue_sweep(%s::bigint, S.now_micros(%s::bigint) - %s::bigint, %s::bigint) AS gone"
COLLECT = "SELECT moved, troubles FROM S.queue_collect(%s::bigint, %s::int, %s::int, %s::bigint)"
#: Bytes of the ended items, with their indexes.
HISTORY = (
    "SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint FROM pg_inherits"
    " WHERE inhparent = 'S.ended'::regclass"
)
FIRST_LIVES = "SELECT S.job_first_life(n) FROM unnest(%s::bigint[]) WITH ORDINALITY AS g (n, at) ORDER BY at"
