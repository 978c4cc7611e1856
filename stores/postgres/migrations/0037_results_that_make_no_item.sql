-- Results of which no item can be made are told to who settled them, for their dead letters.
-- Beside 33.

-- Of items that were settled under a fence as successes those that failed then, and why: the items whose results did not
-- fit. `refused` is the settlement's, so that this is looked at behind it; what is among them may have been settled before.
CREATE FUNCTION job_unfit_told(its_fence bigint, settled bigint[], refused bigint[])
RETURNS TABLE (items bigint[], whys text[]) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
BEGIN
    SELECT array_agg(i.item), array_agg(i.reason) INTO items, whys FROM job_items AS i
        WHERE i.item = ANY (settled) AND i.state = 2;
    IF items IS NOT NULL THEN
        SELECT array_agg(g.n), array_agg(g.w) INTO items, whys FROM unnest(items, whys) AS g (n, w)
            WHERE EXISTS (SELECT 1 FROM ended AS e WHERE e.id = g.n AND e.fence = its_fence AND e.state = 11);
    END IF;
    items := coalesce(items, '{}');
    whys := coalesce(whys, '{}');
    RETURN NEXT;
END $$;
