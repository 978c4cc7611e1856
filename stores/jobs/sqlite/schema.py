"""The tables of jobs in SQLite, beside the queue's own.

The file has one writer, so a job's counters are in its row, and change in the transaction that ends an item. `due`
marks a job with a due step, and is written in that transaction too, so a crash between two steps loses none. An item
has the id of its workload.
"""

from __future__ import annotations

SCHEMA = """
CREATE TABLE IF NOT EXISTS job_trees (
    tree INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    policy TEXT NOT NULL,
    most_failed INTEGER NOT NULL,
    ending TEXT NOT NULL DEFAULT '', -- the state in which it is to end before its time
    why TEXT NOT NULL DEFAULT '',
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    deleted INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
    failed INTEGER NOT NULL DEFAULT 0,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    complete_at INTEGER,
    definition TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS job_trees_keys ON job_trees (type, key) WHERE key <> '';
CREATE INDEX IF NOT EXISTS job_trees_tried ON job_trees (definition) WHERE definition >= 'failed'; -- rules/retrying.py
CREATE INDEX IF NOT EXISTS job_trees_over ON job_trees (complete_at) WHERE complete_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS job_trees_aged ON job_trees (created_at) WHERE complete_at IS NULL AND ending = '';
CREATE TABLE IF NOT EXISTS job_callbacks ( -- of a tree: the workload that tells of its end, around the event
    tree INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    prefix BLOB NOT NULL,
    suffix BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS job_tree_events ( -- of trees that tell of their items and jobs: which events
    tree INTEGER PRIMARY KEY,
    bits INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS job_pauses ( -- of paused trees: the right with which each was paused
    tree INTEGER PRIMARY KEY,
    right TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS job_events ( -- until a stream has them
    number INTEGER PRIMARY KEY,
    bit INTEGER NOT NULL,
    tree TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS jobs (
    job INTEGER PRIMARY KEY,
    tree INTEGER NOT NULL REFERENCES job_trees (tree),
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    prefix BLOB NOT NULL,
    suffix BLOB NOT NULL,
    most INTEGER NOT NULL,
    final INTEGER NOT NULL CHECK (final IN (0, 1)),
    gather INTEGER NOT NULL CHECK (gather IN (0, 1)),
    each INTEGER NOT NULL CHECK (each IN (0, 1)),
    sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)),
    pending INTEGER NOT NULL DEFAULT 0 CHECK (pending >= 0),
    succeeded INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    looked INTEGER NOT NULL DEFAULT -1, -- the last item that an ending or a resumption has reached
    due INTEGER NOT NULL DEFAULT 0 CHECK (due IN (0, 1)),
    complete_at INTEGER CHECK (complete_at IS NULL OR (sealed = 1 AND pending = 0)),
    UNIQUE (tree, place),
    UNIQUE (tree, name)
) STRICT;
CREATE INDEX IF NOT EXISTS jobs_due ON jobs (job) WHERE due = 1;
CREATE TABLE IF NOT EXISTS job_bounds ( -- of jobs whose items may fail less often than their function says
    job INTEGER PRIMARY KEY,
    max_failures INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS job_parents (
    parent INTEGER NOT NULL REFERENCES jobs (job),
    job INTEGER NOT NULL REFERENCES jobs (job),
    PRIMARY KEY (parent, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS job_parents_of ON job_parents (job);
CREATE TABLE IF NOT EXISTS job_items (
    item INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    origin INTEGER, -- the parent's item whose result it is of
    part INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0, 1, 2)), -- pending, succeeded, failed
    reason TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX IF NOT EXISTS job_items_of ON job_items (job, item);
CREATE UNIQUE INDEX IF NOT EXISTS job_items_origins ON job_items (origin, job, part) WHERE origin IS NOT NULL;
CREATE TABLE IF NOT EXISTS job_keys (
    job INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS job_calls ( -- calls that added items, known again when they are repeated
    job INTEGER NOT NULL,
    token TEXT NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (job, token)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS job_payloads ( -- of items that failed, so that they can be tried again
    item INTEGER PRIMARY KEY,
    payload BLOB NOT NULL,
    key TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS job_redrives ( -- workloads of items that failed, and those that the items have since
    former INTEGER PRIMARY KEY,
    item INTEGER NOT NULL,
    job INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS job_redrives_of ON job_redrives (job);
CREATE INDEX IF NOT EXISTS job_redrives_items ON job_redrives (item);
CREATE TABLE IF NOT EXISTS job_results (
    item INTEGER PRIMARY KEY,
    result BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS job_kept ( -- bytes of the two: what trees keep until they are forgotten
    one INTEGER PRIMARY KEY CHECK (one = 1),
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO job_kept SELECT 1, (SELECT coalesce(sum(length(result)), 0) FROM job_results)
    + (SELECT coalesce(sum(length(payload)), 0) FROM job_payloads) WHERE NOT EXISTS (SELECT 1 FROM job_kept);
CREATE TRIGGER IF NOT EXISTS job_results_kept AFTER INSERT ON job_results
    BEGIN UPDATE job_kept SET bytes = bytes + length(new.result); END;
CREATE TRIGGER IF NOT EXISTS job_results_forgotten AFTER DELETE ON job_results
    BEGIN UPDATE job_kept SET bytes = bytes - length(old.result); END;
CREATE TRIGGER IF NOT EXISTS job_payloads_kept AFTER INSERT ON job_payloads
    BEGIN UPDATE job_kept SET bytes = bytes + length(new.payload); END;
CREATE TRIGGER IF NOT EXISTS job_payloads_forgotten AFTER DELETE ON job_payloads
    BEGIN UPDATE job_kept SET bytes = bytes - length(old.payload); END;
CREATE TABLE IF NOT EXISTS job_expansions ( -- results of which each element becomes an item, from `next` on
    job INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    next INTEGER NOT NULL DEFAULT 0,
    result BLOB NOT NULL,
    PRIMARY KEY (job, origin)
) STRICT, WITHOUT ROWID;
"""
