-- What gathers more than fits one payload names its jobs with counts, and its run reads the results by pages
-- (stores/jobs/rules/gathering.py). Steps of a tree that ends are bounded, too.
-- Beside 33.

CREATE INDEX job_trees_tried ON job_trees (definition) WHERE definition LIKE 'failed items of %';

-- Makes the one item of a job that gathers, and seals the job: of all its parents' results where they fit one payload, else
-- of their jobs with counts. It reads no further than there is room, and nothing where the counts say that there is none.
-- Answers -1.
CREATE OR REPLACE FUNCTION job_gather(at bigint, its_job bigint, seen bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off SET enable_hashjoin TO off
SET enable_mergejoin TO off SET enable_bitmapscan TO off AS $$
DECLARE
    here record;
    one record;
    bytes int;
    room bigint;
    payload bytea;
BEGIN
    SELECT j.prefix, j.suffix, j.most, t.id, t.definition INTO here FROM jobs AS j JOIN job_trees AS t ON t.tree = j.tree
        WHERE j.job = its_job AND j.folds = seen AND NOT j.sealed FOR UPDATE OF j;
    IF NOT FOUND THEN
        RETURN -1;
    END IF;
    IF here.definition LIKE 'failed items of %' AND NOT EXISTS (
        SELECT 1 FROM job_parents AS p JOIN job_items AS i ON i.job = p.parent AND i.state > 0 WHERE p.job = its_job)
    THEN
        UPDATE jobs SET sealed = true WHERE job = its_job;
        RETURN -1;
    END IF;
    room := here.most - octet_length(here.prefix) - octet_length(here.suffix) - 1; -- each result has a comma behind it
    IF (SELECT sum(o.succeeded) * 2 > room FROM job_parents AS p JOIN jobs AS o ON o.job = p.parent WHERE p.job = its_job) THEN
        room := -1;
    END IF;
    FOR one IN SELECT p.parent FROM job_parents AS p WHERE p.job = its_job AND room >= 0 ORDER BY p.parent LOOP
        FOR bytes IN SELECT octet_length(r.result) FROM job_items AS i JOIN job_results AS r ON r.item = i.item
            WHERE i.job = one.parent AND i.state > 0 ORDER BY i.job, i.item
        LOOP
            room := room - bytes - 1;
            EXIT WHEN room < 0;
        END LOOP;
        EXIT WHEN room < 0;
    END LOOP;
    IF room < 0 THEN
        SELECT convert_to('{"tailrace.gathered":' || json_build_object('tree', here.id, 'jobs', json_agg(json_build_object(
                'job', o.name, 'succeeded', o.succeeded, 'failed', o.failed) ORDER BY o.job),
            'before', convert_from(here.prefix, 'UTF8'), 'behind', convert_from(here.suffix, 'UTF8')) || '}', 'UTF8')
            INTO payload FROM job_parents AS p JOIN jobs AS o ON o.job = p.parent WHERE p.job = its_job;
    ELSE
        SELECT here.prefix || '['::bytea || coalesce(string_agg(r.result, ','::bytea ORDER BY p.parent, i.item), ''::bytea)
            || ']'::bytea || here.suffix INTO payload FROM job_parents AS p
            JOIN job_items AS i ON i.job = p.parent AND i.state > 0 JOIN job_results AS r ON r.item = i.item
            WHERE p.job = its_job;
    END IF;
    PERFORM job_make(now_micros(at), new_ids(1), ARRAY[its_job], ARRAY[NULL::bigint], '{0}', ARRAY[payload]);
    UPDATE jobs SET sealed = true WHERE job = its_job;
    INSERT INTO job_deltas (job, pending, succeeded, failed) VALUES (its_job, 1, 0, 0);
    RETURN -1;
END $$;

-- The job of which an item that gathers was made first, to whoever has the item out under a fence: one that is tried again
-- in another tree has its results in the former one. 0: nobody has it so; NULL: that tree is forgotten.
CREATE FUNCTION job_gathered(number bigint, its_fence bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM tasks AS t JOIN job_items AS i ON i.item = t.id JOIN jobs AS j ON j.job = i.job
        WHERE t.id = number AND t.fence = its_fence AND t.state >= 2 AND i.state < 1 AND j.gather)
    THEN
        RETURN 0;
    END IF;
    RETURN (WITH RECURSIVE came (job, origin) AS (
        SELECT i.job, i.origin FROM job_items AS i WHERE i.item = number
        UNION ALL SELECT i.job, i.origin FROM came AS c JOIN job_items AS i ON i.item = c.origin)
        SELECT c.job FROM came AS c WHERE c.origin IS NULL);
END $$;

-- Cancels pending items of a job whose tree ends, which were not told yet, and of what is being taken apart for it as many
-- as have some bytes together, or one; how many.
CREATE OR REPLACE FUNCTION job_cancel_some(at bigint, its_job bigint, most int) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    picked bigint[];
    gone bigint;
BEGIN
    WITH dropped AS (
        DELETE FROM job_expansions AS e WHERE e.job = its_job AND e.origin IN (SELECT s.origin FROM (
            SELECT o.origin, row_number() OVER w AS place, sum(octet_length(o.result)) OVER w AS upto
            FROM (SELECT * FROM job_expansions WHERE job = its_job ORDER BY job, origin LIMIT most) AS o
            WINDOW w AS (ORDER BY o.origin)) AS s WHERE s.place = 1 OR s.upto <= 8388608)
        RETURNING e.origin)
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

-- A tree of which a gather failed and is tried again is kept as long as that other try: its results may be read there.
DO $do$
BEGIN
    PERFORM amend('job_forget', $$    SELECT tree INTO root FROM job_trees WHERE complete_at IS NOT NULL AND (complete_at < before OR deleted)
        ORDER BY complete_at LIMIT 1 FOR UPDATE SKIP LOCKED;
$$, $$    SELECT o.tree INTO root FROM job_trees AS o
        WHERE o.complete_at IS NOT NULL AND (o.complete_at < before OR o.deleted) AND NOT (
            EXISTS (SELECT 1 FROM jobs AS j WHERE j.tree = o.tree AND j.gather AND j.failed > 0) AND EXISTS (
                SELECT 1 FROM job_trees AS r
                WHERE r.definition = 'failed items of ' || o.id AND r.definition LIKE 'failed items of %'))
        ORDER BY o.complete_at LIMIT 1 FOR UPDATE OF o SKIP LOCKED;
$$);
END $do$;
