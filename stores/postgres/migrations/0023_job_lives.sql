-- Lives and failures of items of jobs. An item that failed is tried again in its own tree: its next life is another
-- workload, and whatever settles the former one later finds no item (stores/jobs/rules/redriving.py). A job may bound how
-- often an item of it fails; that travels with the claim, in the one header that an item of a job has: [] or [3].

ALTER TABLE jobs ADD COLUMN max_failures int NOT NULL DEFAULT 0,
    ADD COLUMN mark text NOT NULL GENERATED ALWAYS AS (CASE WHEN max_failures = 0 THEN '[]'
        ELSE '[' || max_failures::text || ']' END) STORED;

CREATE TABLE job_redrives (former bigint PRIMARY KEY, item bigint NOT NULL, job bigint NOT NULL);
CREATE INDEX job_redrives_of ON job_redrives (job);

-- Events of trees that tell of their items and jobs, until a stream of a node's log has them (stores/jobs/relay.py).
ALTER TABLE job_trees ADD COLUMN events int NOT NULL DEFAULT 0; -- bits, stores/jobs/rules/events.py
CREATE TABLE job_events (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    what int NOT NULL, -- one of those bits
    tree text NOT NULL,
    payload bytea NOT NULL,
    held bigint NOT NULL DEFAULT 0 -- until then a relay has it
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION job_event(its_id text, event text, tree text, type text, job text, more jsonb, at bigint) RETURNS bytea
LANGUAGE sql STABLE SET jit TO off AS $$
    SELECT convert_to(jsonb_build_object('event', jsonb_build_object('id', its_id || ':' || event, 'event', event,
        'tree', tree, 'type', type, 'job', job, 'at', at / 1e6) || more)::text, 'UTF8')
$$;

-- The oldest events that no relay has; they are the caller's for so many microseconds.
CREATE FUNCTION job_events_take(at bigint, many int, micros bigint)
RETURNS TABLE (number bigint, what int, tree text, payload bytea) LANGUAGE sql
SET search_path FROM CURRENT SET jit TO off AS $$
    UPDATE job_events AS e SET held = now_micros(at) + micros FROM (
        SELECT o.number FROM job_events AS o WHERE o.held <= now_micros(at) ORDER BY o.number LIMIT many
        FOR UPDATE SKIP LOCKED) AS f
    WHERE e.number = f.number RETURNING e.number, e.what, e.tree, e.payload
$$;
CREATE FUNCTION job_events_forget(numbers bigint[]) RETURNS int LANGUAGE sql
SET search_path FROM CURRENT SET jit TO off AS $$
    WITH gone AS (DELETE FROM job_events WHERE number = ANY (numbers) RETURNING number)
    SELECT count(*)::int FROM gone
$$;

-- Makes items that failed pend again, under these ids, while their jobs are open. Answers for each whose workload is that
-- of an item how it stands (0 pending, 1 succeeded, 2 failed), its tree's id and whether its job is complete and its tree
-- ends; or the workload that it has now, with the lane and since when that is due, or with no lane, as it had it before.
-- What was decided of its job is decided anew: its counters were appended to.
CREATE FUNCTION job_redrive(at bigint, formers bigint[], numbers bigint[])
RETURNS TABLE (former bigint, item bigint, stands int, complete boolean, ends boolean, told text, lane int, moment bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
#variable_conflict use_column
DECLARE
    one record;
    here record;
    lanes int[] := '{}';
    kinds int[] := '{}';
    payloads bytea[] := '{}';
    keys text[] := '{}';
    taken bigint[] := '{}';
    of_jobs bigint[] := '{}';
    marks text[] := '{}';
BEGIN
    moment := now_micros(at);
    UPDATE jobs AS j SET folds = j.folds + 1, due = true FROM (
        SELECT o.job FROM jobs AS o WHERE o.complete_at IS NULL AND o.job = ANY (
            ARRAY(SELECT i.job FROM job_items AS i WHERE i.item = ANY (formers) AND i.state > 1))
        ORDER BY o.job FOR UPDATE) AS h WHERE j.job = h.job;
    FOR one IN SELECT g.f, g.n FROM unnest(formers, numbers) AS g (f, n) LOOP
        former := one.f;
        lane := NULL;
        stands := NULL;
        SELECT r.item INTO item FROM job_redrives AS r WHERE r.former = one.f;
        IF FOUND THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT i.state, j.job, j.lane, j.kind, j.complete_at, t.ending, t.id, j.mark, p.payload, p.key INTO here
            FROM job_items AS i JOIN jobs AS j ON j.job = i.job JOIN job_trees AS t ON t.tree = j.tree
            LEFT JOIN job_payloads AS p ON p.item = i.item WHERE i.item = one.f;
        CONTINUE WHEN NOT FOUND;
        stands := here.state;
        complete := here.complete_at IS NOT NULL;
        ends := here.ending <> '';
        told := here.id;
        IF here.state = 2 AND NOT complete AND NOT ends THEN
            UPDATE job_items SET item = one.n, state = 0, reason = '' WHERE item = one.f;
            DELETE FROM job_payloads WHERE item = one.f;
            INSERT INTO job_redrives (former, item, job) VALUES (one.f, one.n, here.job);
            lanes := lanes || here.lane;
            kinds := kinds || here.kind;
            payloads := payloads || here.payload;
            keys := keys || here.key;
            taken := taken || one.n;
            of_jobs := of_jobs || here.job;
            marks := marks || here.mark;
            item := one.n;
            lane := here.lane;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF taken <> '{}' THEN
        PERFORM queue_submit(moment, taken, lanes, kinds, array_fill(0::bigint, ARRAY[cardinality(taken)]),
            ARRAY(SELECT octet_length(p) FROM unnest(payloads) AS p),
            ARRAY(SELECT (33 + CASE WHEN k <> '' THEN 4 ELSE 0 END)::smallint FROM unnest(keys) AS k), payloads,
            taken, keys, marks, array_fill(0::float8, ARRAY[cardinality(taken)]), '{}', '{}', '{}');
        INSERT INTO job_deltas (job, pending, succeeded, failed)
            SELECT j, count(*), 0, -count(*) FROM unnest(of_jobs) AS j GROUP BY j;
    END IF;
END $$;

-- Of the functions before here stands what changes: the retention forgets redrives with their trees, bounds and events are
-- kept and copied (gateways of the version before give none), and a tree that ends hands out nothing more at once.
DO $do$
DECLARE
    one record;
    was text;
BEGIN
    PERFORM set_config('check_function_bodies', 'off', true); -- they are whole with the last change
    FOR one IN SELECT * FROM (VALUES
        ('job_forget', $$    DELETE FROM job_deltas WHERE job IN$$,
            $$    DELETE FROM job_redrives WHERE former IN (SELECT r.former FROM job_redrives AS r
        WHERE r.job IN (SELECT job FROM jobs WHERE tree = root) LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        RETURN gone;
    END IF;
    DELETE FROM job_deltas WHERE job IN$$),
        ('job_make', $$SELECT g.n, g.p, '[]' FROM unnest(numbers, payloads) AS g (n, p);$$,
            $$SELECT g.n, g.p, j.mark
        FROM unnest(numbers, of_jobs, payloads) AS g (n, j, p) JOIN jobs AS j ON j.job = g.j;$$),
        ('job_add', $$SELECT job, kind, jobs.lane, sealed INTO here$$, $$SELECT job, kind, jobs.lane, sealed, mark INTO here$$),
        ('job_add', $$array_fill('[]'::text, ARRAY[many])$$, $$array_fill(here.mark, ARRAY[many])$$),
        ('job_retry', $$j.most, final, gather, each, keeps$$, $$j.most, final, gather, each, keeps, j.max_failures$$),
        ('job_retry', $$most, final, gather, each, keeps)$$, $$most, final, gather, each, keeps, max_failures)$$),
        ('job_retry', $$array_fill('[]'::text, ARRAY[cardinality(taken)])$$,
            $$ARRAY(SELECT j.mark FROM unnest(of_jobs) WITH ORDINALITY AS g (j, n) JOIN jobs AS j ON j.job = g.j
                    ORDER BY g.n)$$),
        ('job_succeed', $$    ), fed AS MATERIALIZED ($$, $$    ), heard AS (
        INSERT INTO job_events (what, tree, payload)
            SELECT 1, o.id, job_event(lpad(to_hex(t.item), 16, '0'), 'item_succeeded', o.id, o.type, j.name,
                jsonb_build_object('item', lpad(to_hex(t.item), 16, '0')), now_at)
            FROM told AS t JOIN jobs AS j ON j.job = t.job JOIN job_trees AS o ON o.tree = j.tree
            WHERE o.events & 1 <> 0 ORDER BY t.item
    ), fed AS MATERIALIZED ($$),
        ('job_end', $$RETURNING i.item, i.job
    ), kept AS ($$, $$RETURNING i.item, i.job, i.reason
    ), heard AS (
        INSERT INTO job_events (what, tree, payload)
            SELECT 2, o.id, job_event(lpad(to_hex(l.item), 16, '0'), 'item_failed', o.id, o.type, j.name,
                jsonb_build_object('item', lpad(to_hex(l.item), 16, '0'), 'reason', l.reason), now_at)
            FROM lost AS l JOIN jobs AS j ON j.job = l.job JOIN job_trees AS o ON o.tree = j.tree
            WHERE o.events & 2 <> 0 ORDER BY l.item
    ), kept AS ($$),
        ('job_decide', $$            CONTINUE WHEN NOT FOUND;
$$, $$            CONTINUE WHEN NOT FOUND;
            INSERT INTO job_events (what, tree, payload)
                SELECT 4, o.id, job_event(o.id || '/' || j.name, 'job_completed', o.id, o.type, j.name,
                    jsonb_build_object('succeeded', j.succeeded, 'failed', j.failed), now_micros(at))
                FROM jobs AS j JOIN job_trees AS o ON o.tree = j.tree WHERE j.job = one.j AND o.events & 4 <> 0;
$$),
        ('job_end_tree', $$why = left(its_why, 500)
$$, $$why = left(its_why, 500), paused = true -- nothing more is handed out
$$),
        ('job_retry', $$created_by, created_at, definition)$$, $$created_by, created_at, events, definition)$$),
        ('job_retry', $$most_failed, who, moment, 'failed$$, $$most_failed, who, moment, events, 'failed$$)
    ) AS changes (name, old, new)
    LOOP
        was := pg_get_functiondef(one.name::regproc);
        IF position(one.old IN was) = 0 THEN
            RAISE EXCEPTION 'the function % is not that of the version before', one.name;
        END IF;
        EXECUTE replace(was, one.old, one.new);
    END LOOP;
    was := pg_get_functiondef('job_create'::regproc);
    DROP FUNCTION job_create;
    -- Open trees are counted only where the first and the last of them are so far apart that they may be too many.
    was := replace(was, 'IF (SELECT count(*) FROM (SELECT 1', 'IF (SELECT max(o.tree) - min(o.tree) + 1
        FROM job_trees AS o WHERE o.complete_at IS NULL) >= most_open AND (SELECT count(*) FROM (SELECT 1');
    was := replace(was, 'done_suffix bytea)', 'done_suffix bytea, bounds integer[] DEFAULT ''{}'', its_events integer DEFAULT 0)');
    EXECUTE replace(was, '    INSERT INTO job_parents', $$    UPDATE jobs AS j SET max_failures = b.most FROM unnest(bounds) WITH ORDINALITY AS b (most, at)
        WHERE j.tree = number AND j.place = b.at - 1 AND b.most > 0;
    UPDATE job_trees SET events = its_events WHERE tree = number AND its_events <> 0;
    INSERT INTO job_parents$$);
END $do$;
