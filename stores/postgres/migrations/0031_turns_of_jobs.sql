-- Jobs take turns: a look goes on behind the last job of the one before, and answers how far it came. A look at those that
-- came first was always at the same ones, where they were many or had much to be done, and others had no turn.

DROP FUNCTION job_fold;

-- Adds up what was appended for some jobs behind one, and answers how these stand. Whose row somebody else has is left to
-- them. `upto`: there may be more behind this one; 0: there are none. Whether parents are open is read first: of a parent
-- that is complete then every delta can be seen. It is lost with a crash as a whole, so its commit is not waited for.
CREATE FUNCTION job_fold(at_most int, behind bigint DEFAULT 0) RETURNS TABLE (
    job bigint, tree bigint, name text, prefix bytea, suffix bytea, most_bytes int, gather boolean, each boolean,
    sealed boolean, pending bigint, looked bigint, complete boolean, folds bigint, parents int, open_parents int,
    policy text, most_failed bigint, tree_failed bigint, ending text, paused boolean, upto bigint
) LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    wanted bigint[];
    held bigint[];
    free bigint[];
    reached bigint := 0;
BEGIN
    SELECT array_agg(s.j ORDER BY s.j) INTO wanted FROM (SELECT w.j FROM (
        (SELECT DISTINCT d.job AS j FROM job_deltas AS d WHERE d.job > behind ORDER BY 1 LIMIT at_most)
        UNION (SELECT j.job FROM jobs AS j WHERE j.due AND j.job > behind ORDER BY j.job LIMIT at_most)) AS w
        ORDER BY w.j LIMIT at_most) AS s;
    IF wanted IS NULL THEN
        RETURN;
    END IF;
    IF cardinality(wanted) >= at_most THEN
        reached := wanted[at_most];
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT array_agg(l.job) INTO held FROM
        (SELECT j.job FROM jobs AS j WHERE j.job = ANY (wanted) ORDER BY j.job FOR NO KEY UPDATE SKIP LOCKED) AS l;
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
            ELSE (SELECT sum(a.failed)::bigint FROM jobs AS a WHERE a.tree = j.tree) END, o.ending, o.paused, reached
        FROM jobs AS j JOIN job_trees AS o ON o.tree = j.tree WHERE j.job = ANY (held) ORDER BY j.job;
END $$;
