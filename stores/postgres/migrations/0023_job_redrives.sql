-- Items of jobs that failed are tried again in their own trees: an item's next life is another workload, and whatever
-- settles the former one later finds no item (stores/jobs/rules/redriving.py).

CREATE TABLE job_redrives (former bigint PRIMARY KEY, item bigint NOT NULL, job bigint NOT NULL);
CREATE INDEX job_redrives_of ON job_redrives (job);

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
        SELECT i.state, j.job, j.lane, j.kind, j.complete_at, t.ending, t.id, p.payload, p.key INTO here
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
            item := one.n;
            lane := here.lane;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF taken <> '{}' THEN
        PERFORM queue_submit(moment, taken, lanes, kinds, array_fill(0::bigint, ARRAY[cardinality(taken)]),
            ARRAY(SELECT octet_length(p) FROM unnest(payloads) AS p),
            ARRAY(SELECT (33 + CASE WHEN k <> '' THEN 4 ELSE 0 END)::smallint FROM unnest(keys) AS k), payloads,
            taken, keys, array_fill('[]'::text, ARRAY[cardinality(taken)]),
            array_fill(0::float8, ARRAY[cardinality(taken)]), '{}', '{}', '{}');
        INSERT INTO job_deltas (job, pending, succeeded, failed)
            SELECT j, count(*), 0, -count(*) FROM unnest(of_jobs) AS j GROUP BY j;
    END IF;
END $$;

-- The retention forgets them with their trees.
DO $do$
DECLARE
    was text := pg_get_functiondef('job_forget'::regproc);
    old text := $$    DELETE FROM job_deltas WHERE job IN$$;
BEGIN
    IF position(old IN was) = 0 THEN
        RAISE EXCEPTION 'the function job_forget is not that of the version before';
    END IF;
    EXECUTE replace(was, old, $$    DELETE FROM job_redrives WHERE former IN (SELECT r.former FROM job_redrives AS r
        WHERE r.job IN (SELECT job FROM jobs WHERE tree = root) LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        RETURN gone;
    END IF;
$$ || old);
END $do$;
