-- Quotas have versions: each has all of them, with who made it and why. Those of before are the first one.

CREATE TABLE quota_changes (
    version bigint PRIMARY KEY,
    who text NOT NULL,
    why text NOT NULL,
    at float8 NOT NULL,
    quotas text NOT NULL
);
INSERT INTO quota_changes (version, who, why, at, quotas)
    SELECT v.version, '', 'those of before there were versions', 0, (
        SELECT json_agg(json_build_object('function', q.function, 'concurrency', q.concurrency, 'rate', q.rate,
            'burst', q.burst, 'weight', q.weight) ORDER BY q.function)::text FROM quotas AS q
    ) FROM control_version AS v WHERE EXISTS (SELECT 1 FROM quotas);

-- `version` is 0 where the quotas are not those that were expected.
CREATE FUNCTION control_quotas(expected bigint, by_whom text, its_why text, its_at float8, its_quotas text, kept bigint)
RETURNS TABLE (version bigint, changed boolean) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    newest bigint;
    before text;
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    SELECT c.version, c.quotas INTO newest, before FROM quota_changes AS c ORDER BY c.version DESC LIMIT 1;
    changed := false;
    IF coalesce(newest, 0) <> expected THEN
        version := 0;
    ELSIF coalesce(before, '[]') <> its_quotas THEN
        changed := true;
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
        INSERT INTO quota_changes VALUES (version, by_whom, its_why, its_at, its_quotas);
        DELETE FROM quota_changes AS c WHERE c.version NOT IN (
            SELECT l.version FROM quota_changes AS l ORDER BY l.version DESC LIMIT kept
        );
    END IF;
    RETURN NEXT;
END $$;
