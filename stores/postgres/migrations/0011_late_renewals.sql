-- A renewal that is late changes nothing: it names the version that its owner had seen, and one that came first has
-- raised it. Else it would take a scheduler off the list that was named since, whom the next owner would not ask.
-- Nodes of the version before name none, as do those that list nobody.

DROP FUNCTION ownership_renew(text, text, bigint, text[]);

CREATE FUNCTION ownership_renew(src text, part text, its_epoch bigint, listed text[], seen bigint DEFAULT 0)
RETURNS TABLE (renewed boolean, version bigint, epoch bigint, holder text, lease float8) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
BEGIN
    PERFORM look_where_we_are();
    RETURN QUERY UPDATE ownership AS o SET version = greatest(o.version + 1, now_micros(NULL)), schedulers = listed
        WHERE o.source = src AND o.partition = part AND o.epoch = its_epoch AND o.holder <> ''
            AND (seen = 0 OR o.version = seen)
        RETURNING true, o.version, o.epoch, o.holder, o.lease;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, o.version, o.epoch, o.holder, o.lease FROM ownership AS o
            WHERE o.source = src AND o.partition = part;
    END IF;
END $$;
