-- Results of tenants: where there is no room, the oldest of the tenant that has most bytes go first.
-- Beside 33.

ALTER TABLE results ADD COLUMN tenant text NOT NULL DEFAULT '';
CREATE INDEX results_of_tenants ON results (tenant, number);

-- Bytes by tenant, of those that have a name, in sixteen rows each as in results_size.
CREATE TABLE result_rooms (tenant text NOT NULL, slot smallint NOT NULL, bytes bigint NOT NULL, PRIMARY KEY (tenant, slot))
    WITH (fillfactor = 10);
CREATE FUNCTION count_rooms() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO result_rooms AS r (tenant, slot, bytes)
            SELECT a.tenant, pg_backend_pid() % 16, sum(a.size) FROM added AS a WHERE a.tenant <> '' GROUP BY 1 ORDER BY 1
            ON CONFLICT (tenant, slot) DO UPDATE SET bytes = r.bytes + excluded.bytes;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO result_rooms AS r (tenant, slot, bytes)
            SELECT a.tenant, pg_backend_pid() % 16, -sum(a.size) FROM removed AS a WHERE a.tenant <> '' GROUP BY 1 ORDER BY 1
            ON CONFLICT (tenant, slot) DO UPDATE SET bytes = r.bytes + excluded.bytes;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER rooms_added AFTER INSERT ON results REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_rooms();
CREATE TRIGGER rooms_changed AFTER UPDATE ON results REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_rooms();
CREATE TRIGGER rooms_removed AFTER DELETE ON results REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_rooms();

-- As results_put, with the tenant of each, empty where it has none.
CREATE FUNCTION results_put_of(at bigint, ids text[], blobs bytea[], tenants text[], max_bytes bigint) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    now_at bigint := now_micros(at);
    over bigint;
    worst text;
BEGIN
    INSERT INTO results AS r (id, number, at, size, result, tenant)
        SELECT g.i, nextval('result_numbers'), now_at, octet_length(g.b), g.b, g.t
        FROM (SELECT * FROM unnest(ids, blobs, tenants) AS u (i, b, t) ORDER BY u.i) AS g
        ON CONFLICT (id) DO UPDATE SET number = excluded.number, at = excluded.at, size = excluded.size,
            result = excluded.result, tenant = excluded.tenant;
    SELECT sum(bytes) - max_bytes INTO over FROM results_size;
    -- One writer at a time makes room; who finds another one at it leaves it to the next.
    WHILE over > 0 AND pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' results', 11)) LOOP
        WITH named AS (SELECT tenant, sum(bytes) AS held FROM result_rooms GROUP BY tenant)
        SELECT w.tenant INTO worst FROM (SELECT n.tenant, n.held FROM named AS n WHERE n.held > 0
            UNION ALL SELECT '', (SELECT sum(bytes) FROM results_size) - (SELECT coalesce(sum(n.held), 0) FROM named AS n)
        ) AS w ORDER BY w.held DESC, w.tenant LIMIT 1;
        WITH oldest AS (
            SELECT o.id, sum(o.size) OVER (ORDER BY o.number) - o.size AS before
            FROM (SELECT r.id, r.number, r.size FROM results AS r WHERE r.tenant = worst ORDER BY r.number LIMIT 1000) AS o
        ), pushed AS (
            DELETE FROM results AS r USING oldest AS o WHERE r.id = o.id AND o.before < over RETURNING r.id, r.number
        )
        INSERT INTO results_gone AS g (id, number) SELECT t.id, t.number FROM pushed AS t
            ON CONFLICT (id) DO UPDATE SET number = excluded.number;
        EXIT WHEN NOT FOUND;
        DELETE FROM results_gone AS g WHERE g.number <= (SELECT max(n.number) - 100000 FROM results_gone AS n);
        SELECT sum(bytes) - max_bytes INTO over FROM results_size;
    END LOOP;
END $$;
