-- Another try of a tree goes on in the one that is open for it, whoever began that and was not answered: begun anew, what
-- failed would run twice. A step is bounded in bytes, too, and what a whole try took along is counted once, at its end.

ALTER TABLE jobs ADD COLUMN taken_upto bigint NOT NULL DEFAULT -1; -- the last failed item of a former tree that is here
DROP FUNCTION job_retry;

-- Takes failed items of a tree along into another one of the same jobs, and seals that with the last. Answers more, done
-- (and how many there are) or why not: unknown, open, none, other; and the id that it has. `joins`: where there is none of
-- this id, one that is open for the same may be it.
CREATE FUNCTION job_retry(
    at bigint, its_id text, new_id text, who text, at_most int, most_bytes bigint DEFAULT 8388608,
    joins boolean DEFAULT false
) RETURNS TABLE (outcome text, items bigint, told text) LANGUAGE plpgsql
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
    last bigint;
    bytes bigint := 0;
    moment bigint := now_micros(at);
    made_of text := 'failed items of ' || its_id;
BEGIN
    items := 0;
    told := new_id;
    SELECT t.tree, t.complete_at, (SELECT coalesce(sum(j.failed), 0) FROM jobs AS j WHERE j.tree = t.tree) AS failed
        INTO former FROM job_trees AS t WHERE t.id = its_id AND NOT t.deleted FOR NO KEY UPDATE OF t; -- one at a time
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
    IF joins AND NOT EXISTS (SELECT 1 FROM job_trees AS t WHERE t.id = new_id) THEN
        SELECT t.id INTO told FROM job_trees AS t WHERE t.complete_at IS NULL AND t.definition = made_of
            AND t.ending = '' AND NOT t.deleted ORDER BY t.tree LIMIT 1;
        told := coalesce(told, new_id);
    END IF;
    INSERT INTO job_trees (id, type, key, policy, most_failed, created_by, created_at, events, definition)
        SELECT told, type, '', policy, most_failed, who, moment, events, made_of
        FROM job_trees WHERE tree = former.tree ON CONFLICT (id) DO NOTHING RETURNING tree INTO number;
    IF number IS NOT NULL THEN
        INSERT INTO jobs (tree, place, name, kind, lane, prefix, suffix, most, final, gather, each, keeps, max_failures)
            SELECT number, place, name, kind, lane, prefix, suffix, j.most, final, gather, each, keeps, j.max_failures
            FROM jobs AS j WHERE j.tree = former.tree ORDER BY place;
        INSERT INTO job_parents (parent, job)
            SELECT np.job, nj.job FROM job_parents AS e JOIN jobs AS p ON p.job = e.parent JOIN jobs AS j ON j.job = e.job
            JOIN jobs AS np ON np.tree = number AND np.place = p.place
            JOIN jobs AS nj ON nj.tree = number AND nj.place = j.place WHERE p.tree = former.tree;
        INSERT INTO job_callbacks SELECT number, kind, lane, prefix, suffix FROM job_callbacks WHERE tree = former.tree;
    ELSE
        SELECT t.tree INTO number FROM job_trees AS t WHERE t.id = told AND t.definition = made_of;
        IF NOT FOUND THEN
            outcome := 'other';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    SELECT j.job, j.sealed INTO root FROM jobs AS j WHERE j.tree = number AND j.place = 0 FOR UPDATE;
    outcome := 'done';
    IF NOT root.sealed THEN
        FOR pair IN SELECT o.job AS old, n.job AS new, n.taken_upto AS behind
            FROM jobs AS o JOIN jobs AS n ON n.tree = number AND n.place = o.place
            WHERE o.tree = former.tree AND NOT o.gather ORDER BY o.place
        LOOP
            last := NULL;
            FOR part IN
                SELECT i.item, p.payload, p.key FROM job_items AS i JOIN job_payloads AS p ON p.item = i.item
                WHERE i.job = pair.old AND i.state = 2 AND i.item > pair.behind AND NOT EXISTS (
                    SELECT 1 FROM job_items AS d WHERE d.origin = i.item AND d.job = pair.new)
                ORDER BY i.item LIMIT at_most - cardinality(taken)
            LOOP
                taken := taken || part.item;
                of_jobs := of_jobs || pair.new;
                payloads := payloads || part.payload;
                keys := keys || part.key;
                bytes := bytes + octet_length(part.payload);
                last := part.item;
                EXIT WHEN bytes >= most_bytes;
            END LOOP;
            IF last IS NOT NULL THEN
                UPDATE jobs SET taken_upto = last WHERE job = pair.new;
            END IF;
            IF cardinality(taken) >= at_most OR bytes >= most_bytes THEN
                outcome := 'more';
                EXIT;
            END IF;
        END LOOP;
        IF taken <> '{}' THEN
            numbers := new_ids(cardinality(taken));
            PERFORM queue_submit(at, numbers, ARRAY(SELECT j.lane FROM unnest(of_jobs) WITH ORDINALITY AS g (j, n)
                    JOIN jobs AS j ON j.job = g.j ORDER BY g.n),
                ARRAY(SELECT j.kind FROM unnest(of_jobs) WITH ORDINALITY AS g (j, n)
                    JOIN jobs AS j ON j.job = g.j ORDER BY g.n),
                array_fill(0::bigint, ARRAY[cardinality(taken)]), ARRAY(SELECT octet_length(p) FROM unnest(payloads) AS p),
                ARRAY(SELECT (33 + CASE WHEN k <> '' THEN 4 ELSE 0 END)::smallint FROM unnest(keys) AS k), payloads,
                numbers, keys, ARRAY(SELECT j.mark FROM unnest(of_jobs) WITH ORDINALITY AS g (j, n)
                    JOIN jobs AS j ON j.job = g.j ORDER BY g.n),
                array_fill(0::float8, ARRAY[cardinality(taken)]), '{}', '{}', '{}');
            INSERT INTO job_items (item, job, origin)
                SELECT g.n, g.j, g.o FROM unnest(numbers, of_jobs, taken) AS g (n, j, o);
            INSERT INTO job_deltas (job, pending, succeeded, failed)
                SELECT j, count(*), 0, 0 FROM unnest(of_jobs) AS j GROUP BY j;
        END IF;
        IF outcome = 'done' THEN
            UPDATE jobs SET sealed = true WHERE job = root.job;
            PERFORM job_mark(ARRAY[root.job]);
        END IF;
    END IF;
    IF outcome = 'done' THEN
        SELECT count(*) INTO items FROM job_items AS i JOIN jobs AS j ON j.job = i.job
            JOIN job_items AS f ON f.item = i.origin JOIN jobs AS o ON o.job = f.job
            WHERE j.tree = number AND o.tree = former.tree;
    END IF;
    RETURN NEXT;
END $$;
