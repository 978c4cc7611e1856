-- Jobs that are open for too long are cancelled (stores/jobs/rules/overdue.py).
-- Beside 33.

CREATE INDEX job_trees_aged ON job_trees (created_at) WHERE complete_at IS NULL AND ending = '';

-- Cancels some of the open trees that were made between two times. Answers how many. Who is beside it has its own.
CREATE FUNCTION job_cancel_overdue(since bigint, before bigint, its_why text, at_most int) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    picked bigint[];
BEGIN
    SELECT array_agg(o.tree) INTO picked FROM (SELECT t.tree FROM job_trees AS t
        WHERE t.complete_at IS NULL AND t.ending = '' AND t.created_at >= since AND t.created_at < before
        LIMIT at_most FOR UPDATE SKIP LOCKED) AS o;
    PERFORM job_end_tree(o, 'cancelled', its_why) FROM unnest(picked) AS o;
    RETURN coalesce(cardinality(picked), 0);
END $$;
