-- Jobs: trees whose jobs feed each other, in the queue's schema, since a child's item is made in the transaction that
-- ends its parent's (stores/jobs). An item has the number of its workload. A task of one has flag 32, and headers that
-- are an empty list: that is how a claim knows it.
--
-- Counters are appended rows of `job_deltas`: nobody who ends or adds items changes a job's row. `job_fold` adds them
-- up, one caller at a time for each job; what is decided then is in force only while `folds` is what was read. Deltas
-- are also the mark that something is to be done with a job, and so is `due` until that was decided.

CREATE TABLE job_trees (
    tree bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    type text NOT NULL,
    key text NOT NULL,
    policy text NOT NULL,
    most_failed bigint NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    definition text NOT NULL,
    ending text NOT NULL DEFAULT '', -- the state in which it is to end before its time
    why text NOT NULL DEFAULT '',
    paused boolean NOT NULL DEFAULT false,
    deleted boolean NOT NULL DEFAULT false,
    complete_at bigint
);
CREATE UNIQUE INDEX job_trees_keys ON job_trees (type, key) WHERE key <> '';
CREATE INDEX job_trees_open ON job_trees (tree) WHERE complete_at IS NULL;
CREATE INDEX job_trees_paused ON job_trees (tree) WHERE paused AND complete_at IS NULL;
CREATE INDEX job_trees_over ON job_trees (complete_at) WHERE complete_at IS NOT NULL;

CREATE TABLE jobs (
    job bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree bigint NOT NULL,
    place int NOT NULL,
    name text NOT NULL,
    kind int NOT NULL,
    lane int NOT NULL,
    prefix bytea NOT NULL,
    suffix bytea NOT NULL,
    most int NOT NULL, -- bytes of a payload
    final boolean NOT NULL,
    gather boolean NOT NULL,
    each boolean NOT NULL,
    keeps boolean NOT NULL, -- its results are kept: it is final, or gathered
    sealed boolean NOT NULL DEFAULT false,
    pending bigint NOT NULL DEFAULT 0,
    succeeded bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    looked bigint NOT NULL DEFAULT -1, -- the last item that a resumption has reached; -1: there is none
    folds bigint NOT NULL DEFAULT 0,
    due boolean NOT NULL DEFAULT false,
    complete_at bigint,
    UNIQUE (tree, place),
    UNIQUE (tree, name),
    CONSTRAINT final_when_done CHECK (complete_at IS NULL OR (sealed AND pending = 0))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX jobs_due ON jobs (job) WHERE due;
CREATE TABLE job_callbacks ( -- of a tree: the workload that tells of its end, around the event
    tree bigint PRIMARY KEY,
    kind int NOT NULL,
    lane int NOT NULL,
    prefix bytea NOT NULL,
    suffix bytea NOT NULL
);
CREATE TABLE job_parents (parent bigint NOT NULL, job bigint NOT NULL, PRIMARY KEY (parent, job));
CREATE INDEX job_parents_of ON job_parents (job);

CREATE TABLE job_deltas (job bigint NOT NULL, pending bigint NOT NULL, succeeded bigint NOT NULL, failed bigint NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE job_items (
    item bigint PRIMARY KEY,
    job bigint NOT NULL,
    origin bigint, -- the parent's item whose result it is of
    part int NOT NULL DEFAULT 0,
    state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2), -- pending, succeeded, failed
    reason text NOT NULL DEFAULT ''
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
CREATE INDEX job_items_pending ON job_items (job, item) WHERE state = 0;
CREATE INDEX job_items_over ON job_items (job, item) WHERE state > 0;
CREATE UNIQUE INDEX job_items_origins ON job_items (origin, job, part) WHERE origin IS NOT NULL;
CREATE TABLE job_keys (job bigint NOT NULL, key text NOT NULL, PRIMARY KEY (job, key));
CREATE TABLE job_calls ( -- calls that added items, known again when they are repeated
    job bigint NOT NULL,
    token text NOT NULL,
    items bigint NOT NULL,
    PRIMARY KEY (job, token)
);
CREATE TABLE job_payloads (item bigint PRIMARY KEY, payload bytea NOT NULL, key text NOT NULL); -- of items that failed
CREATE TABLE job_results (item bigint PRIMARY KEY, result bytea NOT NULL);
CREATE TABLE job_expansions ( -- results of which each element becomes an item, from `next` on
    job bigint NOT NULL,
    origin bigint NOT NULL,
    next int NOT NULL DEFAULT 0,
    result bytea NOT NULL,
    PRIMARY KEY (job, origin)
);

-- So many new ids of now, one behind the other (stores/queue/ids.py).
CREATE FUNCTION new_ids(many int) RETURNS bigint[] LANGUAGE sql VOLATILE SET jit TO off AS $$
    SELECT coalesce(array_agg(((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 22
        | ((s.first + n) & 4194303)), '{}')
    FROM (SELECT (random() * 4194303)::bigint AS first OFFSET 0) AS s, generate_series(1, many) AS n
$$;

-- The bytes of the longest element of a result that is a list; none is 0, and what is no list is NULL.
CREATE FUNCTION longest_part(result bytea) RETURNS int LANGUAGE plpgsql IMMUTABLE SET jit TO off AS $$
DECLARE
    whole json;
BEGIN
    whole := convert_from(result, 'UTF8')::json;
    IF json_typeof(whole) = 'null' THEN
        RETURN 0;
    END IF;
    RETURN (SELECT coalesce(max(octet_length(part::text)), 0) FROM json_array_elements(whole) AS part);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- The items of which no other one can be made: their results, or elements of them, have so many bytes for a payload of so
-- many of that job, or (no bytes) are no list.
CREATE FUNCTION job_unfit(result_ids bigint[], results bytea[])
RETURNS TABLE (item bigint, bytes int, most int, job text) LANGUAGE sql STABLE
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
    SELECT DISTINCT ON (f.item) f.item, f.bytes, f.most, f.name FROM (
        SELECT i.item, c.job, c.most, c.name, c.most - octet_length(c.prefix) - octet_length(c.suffix) AS room,
            CASE WHEN c.each THEN longest_part(r.result) ELSE octet_length(r.result) END AS bytes
        FROM unnest(result_ids, results) AS r (item, result)
        JOIN job_items AS i ON i.item = r.item AND i.state < 1
        JOIN job_parents AS p ON p.parent = i.job JOIN jobs AS c ON c.job = p.job AND NOT c.gather) AS f
    WHERE f.bytes IS NULL OR f.bytes > f.room ORDER BY f.item, f.job
$$;

-- Makes items with their workloads, under these ids. Their jobs' counters are the caller's.
CREATE FUNCTION job_make(
    now_at bigint, numbers bigint[], of_jobs bigint[], origins bigint[], parts int[], payloads bytea[]
) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
BEGIN
    INSERT INTO tasks (id, lane, kind, size, flags, due, next_trigger)
        SELECT g.n, j.lane, j.kind, octet_length(g.p), 33, now_at, now_at
        FROM unnest(numbers, of_jobs, payloads) AS g (n, j, p) JOIN jobs AS j ON j.job = g.j;
    INSERT INTO entities (id, payload, headers) SELECT g.n, g.p, '[]' FROM unnest(numbers, payloads) AS g (n, p);
    INSERT INTO job_items (item, job, origin, part)
        SELECT g.n, g.j, g.o, g.p FROM unnest(numbers, of_jobs, origins, parts) AS g (n, j, o, p);
    INSERT INTO counts (state, items) VALUES (0, cardinality(numbers)), (100, cardinality(numbers));
END $$;

-- `state < 1` is `state = 0` without the index of what pends, which a plan without statistics would walk through whole.

-- Items that succeeded, in the transaction that ends their workloads: from pending to their ends (what had ended is not
-- touched), then results, children with their workloads, and the deltas of all jobs. Answers the lanes of the children.
CREATE FUNCTION job_succeed(now_at bigint, done bigint[], result_ids bigint[], results bytea[]) RETURNS int[]
LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    origins bigint[];
    of_jobs bigint[];
    payloads bytea[];
BEGIN
    WITH won AS (
        UPDATE job_items AS i SET state = 1 WHERE i.item = ANY (done) AND i.state < 1 RETURNING i.item, i.job
    ), told AS MATERIALIZED (
        SELECT w.item, w.job, coalesce(r.result, 'null'::bytea) AS result
        FROM won AS w LEFT JOIN unnest(result_ids, results) AS r (item, result) ON r.item = w.item
    ), kept AS (
        INSERT INTO job_results (item, result)
            SELECT t.item, t.result FROM told AS t JOIN jobs AS j ON j.job = t.job WHERE j.keeps
    ), fed AS MATERIALIZED (
        SELECT t.item, c.job, c.each, t.result, c.prefix || t.result || c.suffix AS payload
        FROM told AS t JOIN job_parents AS p ON p.parent = t.job JOIN jobs AS c ON c.job = p.job AND NOT c.gather
        JOIN job_trees AS o ON o.tree = c.tree AND o.ending = ''
    ), apart AS (
        INSERT INTO job_expansions (job, origin, result) SELECT f.job, f.item, f.result FROM fed AS f WHERE f.each
    ), counted AS (
        INSERT INTO job_deltas (job, pending, succeeded, failed)
            SELECT c.job, sum(c.p), sum(c.s), 0
            FROM (SELECT t.job, -1 AS p, 1 AS s FROM told AS t UNION ALL SELECT f.job, 1, 0 FROM fed AS f) AS c
            GROUP BY c.job ORDER BY c.job
    )
    SELECT array_agg(f.item), array_agg(f.job), array_agg(f.payload) INTO origins, of_jobs, payloads
        FROM (SELECT * FROM fed WHERE NOT each ORDER BY item, job) AS f;
    IF origins IS NOT NULL THEN
        PERFORM job_make(now_at, new_ids(cardinality(origins)), of_jobs, origins,
            array_fill(0, ARRAY[cardinality(origins)]), payloads);
    END IF;
    RETURN ARRAY(SELECT DISTINCT j.lane FROM jobs AS j WHERE j.job = ANY (of_jobs));
END $$;

-- Live items that are about to be buried, some of which may have succeeded.
CREATE FUNCTION job_end(now_at bigint, numbers bigint[], states smallint[], reasons text[]) RETURNS void
LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    won bigint[];
BEGIN
    SELECT array_agg(g.n) INTO won FROM unnest(numbers, states) AS g (n, s) JOIN tasks AS t ON t.id = g.n WHERE g.s = 10;
    IF won IS NOT NULL THEN
        PERFORM job_succeed(now_at, won, '{}', '{}');
    END IF;
    WITH lost AS (
        UPDATE job_items AS i SET state = 2, reason = left(coalesce(nullif(g.r, ''),
            (ARRAY['fatal_failure', 'cancelled', 'dropped', 'expired'])[g.s - 10]), 500)
        FROM unnest(numbers, states, reasons) AS g (n, s, r)
        WHERE i.item = g.n AND i.item = ANY (numbers) AND i.state < 1 AND g.s > 10 RETURNING i.item, i.job
    ), kept AS (
        INSERT INTO job_payloads (item, payload, key)
            SELECT e.id, e.payload, e.key FROM entities AS e WHERE e.id = ANY (ARRAY(SELECT l.item FROM lost AS l))
            ON CONFLICT DO NOTHING
    )
    INSERT INTO job_deltas (job, pending, succeeded, failed)
        SELECT l.job, -count(*), 0, count(*) FROM lost AS l GROUP BY l.job ORDER BY l.job;
END $$;

-- Of claimed items those of paused trees, which are not due until these are resumed. A resumption waits for it.
CREATE FUNCTION job_hold(taken bigint[]) RETURNS bigint[] LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    held bigint[];
BEGIN
    PERFORM 1 FROM job_trees WHERE paused AND complete_at IS NULL ORDER BY tree FOR SHARE;
    SELECT array_agg(i.item) INTO held FROM job_items AS i JOIN jobs AS j ON j.job = i.job
        JOIN job_trees AS o ON o.tree = j.tree WHERE i.item = ANY (taken) AND o.paused AND o.complete_at IS NULL;
    IF held IS NOT NULL THEN
        UPDATE tasks SET next_trigger = 4611686018427387904 WHERE id = ANY (held);
    END IF;
    RETURN held;
END $$;

-- Something is to be done with jobs.
CREATE FUNCTION job_mark(of_jobs bigint[]) RETURNS void LANGUAGE sql SET search_path FROM CURRENT SET jit TO off AS $$
    INSERT INTO job_deltas (job, pending, succeeded, failed) SELECT j, 0, 0, 0 FROM unnest(of_jobs) AS j
$$;

-- Makes a tree. `parents` and `children` are places of jobs. Answers new, known, other (there is another one of this
-- id), key (and whose it is) or many.
CREATE FUNCTION job_create(
    at bigint, its_id text, its_type text, its_key text, its_policy text, its_most_failed bigint, who text,
    its_definition text, most_open int, names text[], kinds int[], lanes int[], prefixes bytea[], suffixes bytea[],
    mosts int[], finals boolean[], gathers boolean[], eaches boolean[], parents int[], children int[],
    done_kind int, done_lane int, done_prefix bytea, done_suffix bytea
) RETURNS TABLE (outcome text, told text) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    number bigint;
    known text;
BEGIN
    told := '';
    SELECT definition INTO known FROM job_trees WHERE id = its_id;
    IF FOUND THEN
        outcome := CASE WHEN known = its_definition THEN 'known' ELSE 'other' END;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT id INTO told FROM job_trees WHERE type = its_type AND key = its_key AND key <> '';
    IF FOUND THEN
        outcome := 'key';
        RETURN NEXT;
        RETURN;
    END IF;
    told := '';
    IF (SELECT count(*) FROM (SELECT 1 FROM job_trees WHERE complete_at IS NULL LIMIT most_open) AS o) >= most_open THEN
        outcome := 'many';
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO job_trees (id, type, key, policy, most_failed, created_by, created_at, definition)
        VALUES (its_id, its_type, its_key, its_policy, its_most_failed, who, now_micros(at), its_definition)
        RETURNING tree INTO number;
    INSERT INTO jobs (tree, place, name, kind, lane, prefix, suffix, most, final, gather, each, keeps)
        SELECT number, g.place - 1, g.n, g.k, g.l, g.p, g.s, g.m, g.f, g.g, g.e, g.f OR EXISTS (
            SELECT 1 FROM unnest(parents, children) AS o (p, c) WHERE o.p = g.place - 1 AND gathers[o.c + 1])
        FROM unnest(names, kinds, lanes, prefixes, suffixes, mosts, finals, gathers, eaches) WITH ORDINALITY
            AS g (n, k, l, p, s, m, f, g, e, place) ORDER BY g.place;
    INSERT INTO job_parents (parent, job)
        SELECT p.job, c.job FROM unnest(parents, children) AS o (p, c)
        JOIN jobs AS p ON p.tree = number AND p.place = o.p JOIN jobs AS c ON c.tree = number AND c.place = o.c;
    IF done_kind IS NOT NULL THEN
        INSERT INTO job_callbacks (tree, kind, lane, prefix, suffix)
            VALUES (number, done_kind, done_lane, done_prefix, done_suffix);
    END IF;
    outcome := 'new';
    RETURN NEXT;
END $$;

-- Adds items to a job, under these ids; none twice for one token. A seal waits for it. Answers done, how many, their lane
-- and since when they are due; or why not and what is to be told with it: unknown, nameless (and the names there are),
-- over, ends, sealed, dedupe, stale, elsewhere. `holder` (0: nobody) is an item that is out under this fence, which adds
-- to its own job or one behind it: neither can be complete before it ends, and its end waits for this.
CREATE FUNCTION job_add(
    at bigint, its_tree text, its_name text, its_token text, numbers bigint[], payloads bytea[], keys text[],
    dedupes text[], holder bigint, its_fence bigint
) RETURNS TABLE (outcome text, told text, items bigint, lane int, moment bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    root record;
    here record;
    own record;
    many int := cardinality(numbers);
BEGIN
    moment := now_micros(at);
    items := 0;
    told := '';
    IF holder > 0 THEN
        PERFORM lock_keys(ARRAY(SELECT k FROM unnest(keys) AS k WHERE k <> ''));
        PERFORM 1 FROM tasks AS t WHERE t.id = holder AND t.fence = its_fence AND t.state >= 2 FOR SHARE;
        IF FOUND THEN
            SELECT j.job, j.name, o.id INTO own FROM job_items AS i JOIN jobs AS j ON j.job = i.job
                JOIN job_trees AS o ON o.tree = j.tree WHERE i.item = holder AND i.state < 1;
        END IF;
        IF NOT FOUND THEN
            outcome := 'stale';
            RETURN NEXT;
            RETURN;
        END IF;
        its_name := coalesce(nullif(its_name, ''), own.name);
        IF its_tree NOT IN ('', own.id) OR NOT EXISTS (
            WITH RECURSIVE behind (job) AS (
                SELECT own.job UNION SELECT p.job FROM behind AS b JOIN job_parents AS p ON p.parent = b.job)
            SELECT 1 FROM behind AS b JOIN jobs AS j ON j.job = b.job WHERE j.name = its_name)
        THEN
            outcome := 'elsewhere';
            told := coalesce(nullif(its_tree, ''), own.id);
            RETURN NEXT;
            RETURN;
        END IF;
        its_tree := own.id;
    END IF;
    SELECT tree, ending, complete_at INTO root FROM job_trees WHERE id = its_tree;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT job, kind, jobs.lane, sealed INTO here FROM jobs
        WHERE tree = root.tree AND (name = its_name OR (its_name = '' AND place = 0)) FOR KEY SHARE;
    IF NOT FOUND THEN
        outcome := 'nameless';
        SELECT string_agg(name, ', ') INTO told
            FROM (SELECT name FROM jobs WHERE tree = root.tree ORDER BY place LIMIT 20) AS n;
        RETURN NEXT;
        RETURN;
    END IF;
    lane := here.lane;
    SELECT c.items INTO items FROM job_calls AS c WHERE c.job = here.job AND c.token = its_token;
    outcome := 'done';
    IF FOUND THEN
        RETURN NEXT;
        RETURN;
    END IF;
    items := 0;
    IF root.complete_at IS NOT NULL THEN
        outcome := 'over';
    ELSIF root.ending <> '' THEN
        outcome := 'ends';
    ELSIF here.sealed AND holder = 0 THEN
        outcome := 'sealed';
    ELSE
        SELECT d INTO told FROM unnest(dedupes) AS d
            WHERE d <> '' AND EXISTS (SELECT 1 FROM job_keys WHERE job = here.job AND key = d) LIMIT 1;
        IF FOUND THEN
            outcome := 'dedupe';
        END IF;
    END IF;
    told := coalesce(told, '');
    IF outcome <> 'done' THEN
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO job_calls (job, token, items) VALUES (here.job, its_token, many);
    INSERT INTO job_keys (job, key) SELECT here.job, d FROM unnest(dedupes) AS d WHERE d <> '' ORDER BY d;
    IF many > 0 THEN
        PERFORM queue_submit(moment, numbers, array_fill(here.lane, ARRAY[many]), array_fill(here.kind, ARRAY[many]),
            array_fill(0::bigint, ARRAY[many]), ARRAY(SELECT octet_length(p) FROM unnest(payloads) AS p),
            ARRAY(SELECT (33 + CASE WHEN k <> '' THEN 4 ELSE 0 END)::smallint FROM unnest(keys) AS k), payloads,
            numbers, keys, array_fill('[]'::text, ARRAY[many]), array_fill(0::float8, ARRAY[many]), '{}', '{}', '{}');
        INSERT INTO job_items (item, job) SELECT n, here.job FROM unnest(numbers) AS n;
        INSERT INTO job_deltas (job, pending, succeeded, failed) VALUES (here.job, many, 0, 0);
    END IF;
    items := many;
    RETURN NEXT;
END $$;

-- Seals a job without parents. Answers sealed, again, unknown, nameless (and the names there are) or born.
CREATE FUNCTION job_seal(its_tree text, its_name text) RETURNS TABLE (outcome text, told text) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    root bigint;
    here record;
BEGIN
    told := '';
    SELECT tree INTO root FROM job_trees WHERE id = its_tree;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT job, sealed INTO here FROM jobs
        WHERE tree = root AND (name = its_name OR (its_name = '' AND place = 0)) FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 'nameless';
        SELECT string_agg(name, ', ') INTO told
            FROM (SELECT name FROM jobs WHERE tree = root ORDER BY place LIMIT 20) AS n;
    ELSIF EXISTS (SELECT 1 FROM job_parents WHERE job = here.job) THEN
        outcome := 'born';
    ELSIF here.sealed THEN
        outcome := 'again';
    ELSE
        UPDATE jobs SET sealed = true WHERE job = here.job;
        PERFORM job_mark(ARRAY[here.job]);
        outcome := 'sealed';
    END IF;
    RETURN NEXT;
END $$;

-- A tree is to end before its time. Answers whether it was not to yet.
CREATE FUNCTION job_end_tree(its_tree bigint, its_ending text, its_why text) RETURNS boolean LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
BEGIN
    UPDATE job_trees SET ending = its_ending, why = left(its_why, 500)
        WHERE tree = its_tree AND ending = '' AND complete_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM job_mark(ARRAY(SELECT job FROM jobs WHERE tree = its_tree AND complete_at IS NULL));
    RETURN true;
END $$;

-- Cancels, pauses, resumes or deletes a tree: one write on it, in force at once. Answers done, over or unknown.
CREATE FUNCTION job_change(its_id text, what text, its_why text) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    root record;
BEGIN
    SELECT tree, ending, paused, complete_at INTO root FROM job_trees WHERE id = its_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    IF what = 'delete' THEN
        UPDATE job_trees SET deleted = true WHERE tree = root.tree;
    END IF;
    IF root.complete_at IS NOT NULL THEN
        RETURN CASE WHEN what = 'delete' THEN 'done' ELSE 'over' END;
    END IF;
    IF what IN ('cancel', 'delete') THEN
        PERFORM job_end_tree(root.tree, 'cancelled', its_why);
        RETURN CASE WHEN root.ending <> '' AND what = 'cancel' THEN 'over' ELSE 'done' END;
    END IF;
    IF root.ending <> '' THEN
        RETURN 'over';
    END IF;
    IF what = 'pause' THEN
        UPDATE job_trees SET paused = true WHERE tree = root.tree;
    ELSIF root.paused THEN
        UPDATE job_trees SET paused = false WHERE tree = root.tree;
        UPDATE jobs SET looked = 0 WHERE tree = root.tree AND complete_at IS NULL;
        PERFORM job_mark(ARRAY(SELECT job FROM jobs WHERE tree = root.tree AND complete_at IS NULL));
    END IF;
    RETURN 'done';
END $$;

-- Adds up what was appended for some jobs, and answers how these stand. Whose row somebody else has is left to them.
-- Whether parents are open is read first: of a parent that is complete then every delta can be seen. It is lost with a
-- crash as a whole, so its commit is not waited for.
CREATE FUNCTION job_fold(at_most int) RETURNS TABLE (
    job bigint, tree bigint, name text, prefix bytea, suffix bytea, most_bytes int, gather boolean, each boolean,
    sealed boolean, pending bigint, looked bigint, complete boolean, folds bigint, parents int, open_parents int,
    policy text, most_failed bigint, tree_failed bigint, ending text, paused boolean
) LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    wanted bigint[];
    held bigint[];
    free bigint[];
BEGIN
    SELECT array_agg(j) INTO wanted FROM (
        (SELECT DISTINCT d.job AS j FROM job_deltas AS d LIMIT at_most)
        UNION (SELECT j.job FROM jobs AS j WHERE j.due ORDER BY j.job LIMIT at_most)) AS w;
    IF wanted IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT array_agg(l.job) INTO held FROM
        (SELECT j.job FROM jobs AS j WHERE j.job = ANY (wanted) ORDER BY j.job LIMIT at_most
         FOR NO KEY UPDATE SKIP LOCKED) AS l;
    SELECT array_agg(h) INTO free FROM unnest(held) AS h WHERE NOT EXISTS (
        SELECT 1 FROM job_parents AS p JOIN jobs AS o ON o.job = p.parent WHERE p.job = h AND o.complete_at IS NULL);
    WITH gone AS (
        DELETE FROM job_deltas AS d WHERE d.job = ANY (held) RETURNING d.job, d.pending, d.succeeded, d.failed
    ), summed AS (
        SELECT g.job, sum(g.pending) AS p, sum(g.succeeded) AS s, sum(g.failed) AS f FROM gone AS g GROUP BY g.job
    )
    UPDATE jobs AS j SET pending = j.pending + coalesce(s.p, 0), succeeded = j.succeeded + coalesce(s.s, 0),
        failed = j.failed + coalesce(s.f, 0), due = true, folds = j.folds + 1
        FROM unnest(held) AS h LEFT JOIN summed AS s ON s.job = h WHERE j.job = h;
    RETURN QUERY SELECT j.job, j.tree, j.name, j.prefix, j.suffix, j.most, j.gather, j.each, j.sealed, j.pending, j.looked,
        j.complete_at IS NOT NULL, j.folds, (SELECT count(*)::int FROM job_parents AS p WHERE p.job = j.job),
        (NOT j.job = ANY (coalesce(free, '{}')))::int, o.policy, o.most_failed,
        CASE WHEN o.policy = 'continue' OR o.ending <> '' THEN 0
            ELSE (SELECT sum(a.failed)::bigint FROM jobs AS a WHERE a.tree = j.tree) END, o.ending, o.paused
        FROM jobs AS j JOIN job_trees AS o ON o.tree = j.tree WHERE j.job = ANY (held) ORDER BY j.job;
END $$;

-- Makes the workload that tells of the end of a tree, where that is to be told (stores/jobs/rules/callback.py).
CREATE FUNCTION job_tell(at bigint, its_tree bigint) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    kept record;
    root record;
    payload bytea;
BEGIN
    SELECT kind, lane, prefix, suffix INTO kept FROM job_callbacks WHERE tree = its_tree;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT t.id, t.type, t.ending, t.why, t.complete_at, sum(j.succeeded) AS succeeded, sum(j.failed) AS failed INTO root
        FROM job_trees AS t JOIN jobs AS j ON j.tree = t.tree WHERE t.tree = its_tree GROUP BY t.tree;
    payload := kept.prefix || convert_to(json_build_object('id', root.id || ':done', 'job', root.id, 'type', root.type,
        'state', CASE WHEN root.ending = '' THEN 'complete' ELSE root.ending END, 'succeeded', root.succeeded,
        'failed', root.failed, 'why', root.why, 'at', root.complete_at / 1e6)::text, 'UTF8') || kept.suffix;
    PERFORM queue_submit(at, new_ids(1), ARRAY[kept.lane], ARRAY[kept.kind], '{0}', ARRAY[octet_length(payload)], '{0}',
        ARRAY[payload], '{}', '{}', '{}', '{}', '{}', '{}', '{}');
END $$;

-- Does what was decided of jobs as they stood, where they stand so still: nothing (it is not due any more), seal or
-- complete. Answers how many.
CREATE FUNCTION job_decide(at bigint, of_jobs bigint[], seen bigint[], steps text[]) RETURNS int LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    one record;
    number bigint;
    done int := 0;
BEGIN
    IF NOT 'complete' = ANY (steps) THEN -- it is decided again
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    FOR one IN SELECT g.j, g.f, g.s FROM unnest(of_jobs, seen, steps) AS g (j, f, s) ORDER BY g.j LOOP
        IF one.s = 'nothing' THEN
            UPDATE jobs SET due = false WHERE job = one.j AND folds = one.f AND due;
        ELSIF one.s = 'seal' THEN
            PERFORM 1 FROM jobs WHERE job = one.j FOR UPDATE; -- who adds now is waited for
            UPDATE jobs SET sealed = true WHERE job = one.j AND folds = one.f AND NOT sealed;
        ELSE
            SELECT tree INTO number FROM jobs WHERE job = one.j;
            PERFORM 1 FROM job_trees WHERE tree = number FOR UPDATE; -- two last ones do not miss each other
            UPDATE jobs SET complete_at = now_micros(at), due = false
                WHERE job = one.j AND folds = one.f AND complete_at IS NULL;
            CONTINUE WHEN NOT FOUND;
            PERFORM job_mark(ARRAY(SELECT p.job FROM job_parents AS p WHERE p.parent = one.j));
            UPDATE job_trees SET complete_at = now_micros(at) WHERE tree = number AND complete_at IS NULL
                AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.tree = number AND j.complete_at IS NULL);
            IF FOUND THEN
                PERFORM job_tell(at, number);
            END IF;
        END IF;
        done := done + 1;
    END LOOP;
    RETURN done;
END $$;

-- Cancels pending items of a job whose tree ends, which were not told yet, and what is being taken apart for it; how many.
CREATE FUNCTION job_cancel_some(at bigint, its_job bigint, most int) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    picked bigint[];
    gone bigint;
BEGIN
    WITH dropped AS (DELETE FROM job_expansions AS e WHERE e.job = its_job RETURNING e.origin)
    SELECT count(*) INTO gone FROM dropped;
    IF gone > 0 THEN
        INSERT INTO job_deltas (job, pending, succeeded, failed) VALUES (its_job, -gone, 0, 0);
    END IF;
    SELECT array_agg(s.item) INTO picked FROM
        (SELECT i.item FROM job_items AS i JOIN tasks AS t ON t.id = i.item
         WHERE i.job = its_job AND i.state = 0 AND t.flags & 2 = 0 ORDER BY i.item LIMIT most) AS s;
    IF picked IS NOT NULL THEN
        PERFORM queue_cancel(at, picked);
    END IF;
    RETURN gone + coalesce(cardinality(picked), 0);
END $$;

-- Items that wait since their tree was paused, and is no more, are due again; how many were looked at.
CREATE FUNCTION job_wake_some(at bigint, its_job bigint, most int) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    begin_at bigint;
    picked bigint[];
BEGIN
    SELECT looked INTO begin_at FROM jobs WHERE job = its_job FOR NO KEY UPDATE;
    IF begin_at IS NULL OR begin_at < 0 THEN
        RETURN 0;
    END IF;
    SELECT array_agg(s.item ORDER BY s.item) INTO picked FROM
        (SELECT i.item FROM job_items AS i WHERE i.job = its_job AND i.state = 0 AND i.item > begin_at
         ORDER BY i.job, i.item LIMIT most) AS s;
    UPDATE tasks AS t SET next_trigger = now_micros(at) WHERE t.id = ANY (picked) AND t.next_trigger = 4611686018427387904;
    UPDATE jobs SET looked = coalesce(picked[cardinality(picked)], -1) WHERE job = its_job;
    RETURN coalesce(cardinality(picked), 0);
END $$;

-- Results that are taken apart for a job, the oldest first: as many as have some bytes together, or one.
CREATE FUNCTION job_apart(its_job bigint, many int, bytes bigint) RETURNS TABLE (origin bigint, next int, result bytea)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
    SELECT s.origin, s.next, s.result FROM (
        SELECT e.*, row_number() OVER w AS place, sum(octet_length(e.result)) OVER w AS upto
        FROM (SELECT * FROM job_expansions WHERE job = its_job ORDER BY job, origin LIMIT many) AS e
        WINDOW w AS (ORDER BY e.origin)) AS s
    WHERE s.place = 1 OR s.upto <= bytes ORDER BY s.origin
$$;

-- Makes items of the next elements of results that are taken apart: each of these counts as one item until its last
-- element, and stands then at its end. How many, or -1: somebody else made some of them.
CREATE FUNCTION job_expand(
    at bigint, its_job bigint, apart bigint[], begins bigint[], ends bigint[], lasts boolean[], origins bigint[],
    parts int[], payloads bytea[]
) RETURNS int LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    many int := cardinality(payloads);
    held int;
BEGIN
    SELECT count(*) INTO held FROM (
        SELECT 1 FROM job_expansions AS e JOIN unnest(apart, begins) AS g (o, b) ON e.origin = g.o AND e.next = g.b
        WHERE e.job = its_job ORDER BY e.origin FOR UPDATE OF e) AS h;
    IF held < cardinality(apart) THEN
        RETURN -1;
    END IF;
    DELETE FROM job_expansions WHERE job = its_job AND origin IN
        (SELECT g.o FROM unnest(apart, lasts) AS g (o, l) WHERE g.l);
    UPDATE job_expansions AS e SET next = g.n FROM unnest(apart, ends, lasts) AS g (o, n, l)
        WHERE e.job = its_job AND e.origin = g.o AND NOT g.l;
    IF many > 0 THEN
        PERFORM job_make(now_micros(at), new_ids(many), array_fill(its_job, ARRAY[many]), origins, parts, payloads);
    END IF;
    INSERT INTO job_deltas (job, pending, succeeded, failed)
        SELECT its_job, many - count(*), 0, 0 FROM unnest(lasts) AS l WHERE l;
    RETURN many;
END $$;

-- Makes the one item of a job that gathers, of all its parents' results, and seals the job. Answers -1, or how many bytes
-- are too many.
CREATE FUNCTION job_gather(at bigint, its_job bigint, seen bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    here record;
    bytes bigint;
    payload bytea;
BEGIN
    SELECT j.prefix, j.suffix, j.most INTO here FROM jobs AS j
        WHERE j.job = its_job AND j.folds = seen AND NOT j.sealed FOR UPDATE;
    IF NOT FOUND THEN
        RETURN -1;
    END IF;
    SELECT greatest(coalesce(sum(octet_length(r.result) + 1), 0), 1) + 1 INTO bytes FROM job_parents AS p
        JOIN job_items AS i ON i.job = p.parent AND i.state > 0 JOIN job_results AS r ON r.item = i.item WHERE p.job = its_job;
    IF bytes + octet_length(here.prefix) + octet_length(here.suffix) > here.most THEN
        RETURN bytes;
    END IF;
    SELECT here.prefix || '['::bytea || coalesce(string_agg(r.result, ','::bytea ORDER BY p.parent, i.item), ''::bytea)
        || ']'::bytea || here.suffix INTO payload FROM job_parents AS p
        JOIN job_items AS i ON i.job = p.parent AND i.state > 0 JOIN job_results AS r ON r.item = i.item WHERE p.job = its_job;
    PERFORM job_make(now_micros(at), new_ids(1), ARRAY[its_job], ARRAY[NULL::bigint], '{0}', ARRAY[payload]);
    UPDATE jobs SET sealed = true WHERE job = its_job;
    INSERT INTO job_deltas (job, pending, succeeded, failed) VALUES (its_job, 1, 0, 0);
    RETURN -1;
END $$;

-- Takes failed items of a tree along into another one of the same jobs, and seals that with the last. Answers more, done
-- or why not: unknown, open, none; and how many there are by now.
CREATE FUNCTION job_retry(at bigint, its_id text, new_id text, who text, at_most int)
RETURNS TABLE (outcome text, items bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    former record;
    number bigint;
    root record;
    pair record;
    taken bigint[] := '{}';
    of_jobs bigint[] := '{}';
    payloads bytea[] := '{}';
    keys text[] := '{}';
    numbers bigint[];
    part record;
    moment bigint := now_micros(at);
BEGIN
    items := 0;
    SELECT t.tree, t.complete_at, (SELECT coalesce(sum(j.failed), 0) FROM jobs AS j WHERE j.tree = t.tree) AS failed
        INTO former FROM job_trees AS t WHERE t.id = its_id AND NOT t.deleted;
    IF NOT FOUND THEN
        outcome := 'unknown';
    ELSIF former.complete_at IS NULL THEN
        outcome := 'open';
    ELSIF former.failed = 0 THEN
        outcome := 'none';
    END IF;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO job_trees (id, type, key, policy, most_failed, created_by, created_at, definition)
        SELECT new_id, type, '', policy, most_failed, who, moment, 'failed items of ' || its_id
        FROM job_trees WHERE tree = former.tree ON CONFLICT (id) DO NOTHING RETURNING tree INTO number;
    IF number IS NOT NULL THEN
        INSERT INTO jobs (tree, place, name, kind, lane, prefix, suffix, most, final, gather, each, keeps)
            SELECT number, place, name, kind, lane, prefix, suffix, j.most, final, gather, each, keeps
            FROM jobs AS j WHERE j.tree = former.tree ORDER BY place;
        INSERT INTO job_parents (parent, job)
            SELECT np.job, nj.job FROM job_parents AS e JOIN jobs AS p ON p.job = e.parent JOIN jobs AS j ON j.job = e.job
            JOIN jobs AS np ON np.tree = number AND np.place = p.place
            JOIN jobs AS nj ON nj.tree = number AND nj.place = j.place WHERE p.tree = former.tree;
        INSERT INTO job_callbacks SELECT number, kind, lane, prefix, suffix FROM job_callbacks WHERE tree = former.tree;
    ELSE
        SELECT t.tree INTO number FROM job_trees AS t WHERE t.id = new_id;
    END IF;
    SELECT j.job, j.sealed INTO root FROM jobs AS j WHERE j.tree = number AND j.place = 0 FOR UPDATE;
    outcome := 'done';
    IF NOT root.sealed THEN
        FOR pair IN SELECT o.job AS old, n.job AS new FROM jobs AS o JOIN jobs AS n ON n.tree = number AND n.place = o.place
            WHERE o.tree = former.tree AND NOT o.gather ORDER BY o.place
        LOOP
            FOR part IN
                SELECT i.item, p.payload, p.key FROM job_items AS i JOIN job_payloads AS p ON p.item = i.item
                WHERE i.job = pair.old AND i.state = 2 AND NOT EXISTS (
                    SELECT 1 FROM job_items AS d WHERE d.origin = i.item AND d.job = pair.new)
                ORDER BY i.item LIMIT at_most - cardinality(taken)
            LOOP
                taken := taken || part.item;
                of_jobs := of_jobs || pair.new;
                payloads := payloads || part.payload;
                keys := keys || part.key;
            END LOOP;
            EXIT WHEN cardinality(taken) >= at_most;
        END LOOP;
        IF taken <> '{}' THEN
            numbers := new_ids(cardinality(taken));
            PERFORM queue_submit(at, numbers, ARRAY(SELECT j.lane FROM unnest(of_jobs) WITH ORDINALITY AS g (j, n)
                    JOIN jobs AS j ON j.job = g.j ORDER BY g.n),
                ARRAY(SELECT j.kind FROM unnest(of_jobs) WITH ORDINALITY AS g (j, n)
                    JOIN jobs AS j ON j.job = g.j ORDER BY g.n),
                array_fill(0::bigint, ARRAY[cardinality(taken)]), ARRAY(SELECT octet_length(p) FROM unnest(payloads) AS p),
                ARRAY(SELECT (33 + CASE WHEN k <> '' THEN 4 ELSE 0 END)::smallint FROM unnest(keys) AS k), payloads,
                numbers, keys, array_fill('[]'::text, ARRAY[cardinality(taken)]),
                array_fill(0::float8, ARRAY[cardinality(taken)]), '{}', '{}', '{}');
            INSERT INTO job_items (item, job, origin)
                SELECT g.n, g.j, g.o FROM unnest(numbers, of_jobs, taken) AS g (n, j, o);
            INSERT INTO job_deltas (job, pending, succeeded, failed)
                SELECT j, count(*), 0, 0 FROM unnest(of_jobs) AS j GROUP BY j;
        END IF;
        IF cardinality(taken) >= at_most THEN
            outcome := 'more';
        ELSE
            UPDATE jobs SET sealed = true WHERE job = root.job;
            PERFORM job_mark(ARRAY[root.job]);
        END IF;
    END IF;
    SELECT count(*) INTO items FROM job_items AS i JOIN jobs AS j ON j.job = i.job JOIN job_items AS f ON f.item = i.origin
        JOIN jobs AS o ON o.job = f.job WHERE j.tree = number AND o.tree = former.tree;
    RETURN NEXT;
END $$;

-- Forgets some rows of a tree that was complete before a time, or that is deleted and over; how many.
CREATE FUNCTION job_forget(before bigint, most int) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    root bigint;
    picked bigint[];
    gone bigint;
BEGIN
    SELECT tree INTO root FROM job_trees WHERE complete_at IS NOT NULL AND (complete_at < before OR deleted)
        ORDER BY complete_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    UPDATE job_trees SET deleted = true WHERE tree = root AND NOT deleted; -- seen whole, or not
    SELECT array_agg(s.item) INTO picked FROM (SELECT i.item FROM job_items AS i
        WHERE i.job IN (SELECT job FROM jobs WHERE tree = root) AND i.state > 0 LIMIT most) AS s;
    IF picked IS NOT NULL THEN
        DELETE FROM job_results WHERE item = ANY (picked);
        DELETE FROM job_payloads WHERE item = ANY (picked);
        DELETE FROM job_items WHERE item = ANY (picked);
        RETURN cardinality(picked);
    END IF;
    DELETE FROM job_keys WHERE (job, key) IN (SELECT k.job, k.key FROM job_keys AS k
        WHERE k.job IN (SELECT job FROM jobs WHERE tree = root) LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        RETURN gone;
    END IF;
    DELETE FROM job_calls WHERE (job, token) IN (SELECT c.job, c.token FROM job_calls AS c
        WHERE c.job IN (SELECT job FROM jobs WHERE tree = root) LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        RETURN gone;
    END IF;
    DELETE FROM job_deltas WHERE job IN (SELECT job FROM jobs WHERE tree = root);
    DELETE FROM job_expansions WHERE job IN (SELECT job FROM jobs WHERE tree = root);
    DELETE FROM job_parents WHERE job IN (SELECT job FROM jobs WHERE tree = root);
    DELETE FROM jobs WHERE tree = root;
    DELETE FROM job_callbacks WHERE tree = root;
    DELETE FROM job_trees WHERE tree = root;
    RETURN 1;
END $$;

-- The queue's own functions: here stands of each what changes. Results that came with successes are arguments of the
-- settlement, which older nodes do not give; one of which no item can be made is a failure. A settlement also answers,
-- where items of jobs ended, the lanes in which items are due by that, and since when.
DO $do$
DECLARE
    one record;
    was text;
BEGIN
    PERFORM set_config('check_function_bodies', 'off', true); -- they are whole with the last change
    FOR one IN SELECT * FROM (VALUES
        ('bury', $$    SELECT slot INTO into_slot FROM filling;
$$, $$    SELECT slot INTO into_slot FROM filling;
    IF EXISTS (SELECT 1 FROM tasks AS t WHERE t.id = ANY (numbers) AND t.flags & 32 <> 0) THEN
        PERFORM job_end(now_at, numbers, states, reasons);
    END IF;
$$),
        ('queue_claim', $$    before int;
$$, $$    before int;
    held bigint[];
$$),
        ('queue_claim', $$    IF count_taken > 0 THEN
        -- Two$$, $$    IF count_taken > 0 AND EXISTS (SELECT 1 FROM job_trees WHERE paused AND complete_at IS NULL) THEN
        held := job_hold(taken);
        IF held IS NOT NULL THEN
            taken := ARRAY(SELECT u.n FROM unnest(taken) WITH ORDINALITY AS u (n, place) WHERE NOT u.n = ANY (held)
                ORDER BY u.place);
            count_taken := cardinality(taken);
            fresh := (SELECT count(*) FROM tasks AS t WHERE t.id = ANY (taken) AND t.state = 0);
        END IF;
    END IF;
    IF count_taken > 0 THEN
        -- Two$$),
        ('queue_settle', $$    ends bigint[];
$$, $$    ends bigint[];
    unfit record;
$$),
        ('queue_settle', $$    keys_locked := lock_keys_of(succeeded || numbers);
$$, $$    IF result_ids <> '{}' THEN
        FOR unfit IN SELECT * FROM job_unfit(result_ids, results) LOOP
            succeeded := array_remove(succeeded, unfit.item);
            numbers := numbers || unfit.item;
            states := states || 11::smallint;
            delays := delays || 0::bigint;
            all_attempts := all_attempts || 0;
            all_crashes := all_crashes || 0;
            all_throttles := all_throttles || 0;
            reasons := reasons || CASE WHEN unfit.bytes IS NULL
                THEN format('each element of its result was to become an item of ''%s'', and it is no list', unfit.job)
                ELSE format('its result has %s bytes, and a payload for the job ''%s'' may have %s: return a reference to'
                    ' where it lies', unfit.bytes, unfit.job, unfit.most) END;
            progresses := progresses || ''::text;
            outcomes := outcomes || ''::text;
        END LOOP;
    END IF;
    keys_locked := lock_keys_of(succeeded || numbers);
$$),
        ('queue_settle', $$count(*) FILTER (WHERE state = 4), count(*)] INTO$$,
            $$count(*) FILTER (WHERE state = 4), count(*), count(*) FILTER (WHERE flags & 32 <> 0)] INTO$$),
        ('queue_settle', $$            IF keys_locked THEN
                again := release_keys(done);
            END IF;
$$, $$            IF keys_locked THEN
                again := release_keys(done);
            END IF;
            IF by_state[5] > 0 THEN
                fed := job_succeed(now_at, done, result_ids, results);
            END IF;
$$),
        ('queue_settle', $$        IF ends IS NOT NULL THEN
$$, $$        IF ends IS NOT NULL THEN
            IF EXISTS (SELECT 1 FROM tasks AS t WHERE t.id = ANY (ends) AND t.flags & 32 <> 0) THEN
                fed := coalesce(fed, '{}');
                again := again OR 10 = ANY (states);
            END IF;
$$)
    ) AS changes (name, old, new)
    LOOP
        was := pg_get_functiondef(one.name::regproc);
        IF position(one.old IN was) = 0 THEN
            RAISE EXCEPTION 'the function % is not that of the version before', one.name;
        END IF;
        EXECUTE replace(was, one.old, one.new);
    END LOOP;
    was := pg_get_functiondef('queue_settle'::regproc);
    DROP FUNCTION queue_settle;
    was := replace(was, 'outcomes text[])',
        'outcomes text[], result_ids bigint[] DEFAULT ''{}'', results bytea[] DEFAULT ''{}'')');
    was := replace(was, 'again boolean)', 'again boolean, fed integer[], moment bigint)');
    EXECUTE replace(was, 'again := false;', 'again := false; moment := now_at;');
END $do$;
