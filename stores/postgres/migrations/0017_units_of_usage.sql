-- What is used of a unit of one's own is a row whose downstreams end with # and the unit. Where an hour is full it stays
-- apart from the slot-time of all others: it is summed by its unit.

-- Rows are of kinds that may all be counted apart, but for those beyond `kinds` and then `functions` in their hour. One
-- report is counted after the other, so that these bounds hold and nobody waits for two rows of somebody who waits for
-- his.
CREATE OR REPLACE FUNCTION usage_add(
    its_scheduler text, its_number bigint, its_hour bigint, below bigint, kinds bigint, functions bigint, others text,
    hours bigint[], names text[], tenants text[], called text[], counts bigint[], times bigint[]
) RETURNS boolean LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    row record;
    known bigint;
    known_of bigint := -1;
    fresh bigint;
BEGIN
    LOCK TABLE usage_reports IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO usage_reports AS r VALUES (its_scheduler, its_number, its_hour) ON CONFLICT (scheduler)
        DO UPDATE SET number = excluded.number, hour = excluded.hour WHERE excluded.number > r.number;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH new AS (
        SELECT t.hour, t.function, t.tenant, t.downstreams, sum(t.items)::bigint AS items, sum(t.micros)::bigint AS micros
            FROM unnest(hours, names, tenants, called, counts, times)
            AS t(hour, function, tenant, downstreams, items, micros) GROUP BY 1, 2, 3, 4
    )
    UPDATE usage AS u SET items = u.items + n.items, micros = u.micros + n.micros FROM new AS n
        WHERE (u.hour, u.function, u.tenant, u.downstreams) = (n.hour, n.function, n.tenant, n.downstreams);
    FOR row IN -- kinds that are not there yet
        SELECT t.* FROM unnest(hours, names, tenants, called, counts, times)
            AS t(hour, function, tenant, downstreams, items, micros)
        WHERE t.hour >= below AND NOT EXISTS (
            SELECT FROM usage AS u WHERE (u.hour, u.function, u.tenant, u.downstreams)
            = (t.hour, t.function, t.tenant, t.downstreams)
        ) ORDER BY t.hour
    LOOP
        IF row.hour <> known_of THEN
            known_of := row.hour;
            SELECT count(*) INTO known FROM usage AS u WHERE u.hour = row.hour;
        END IF;
        IF known >= kinds THEN
            row.tenant := others;
            IF known >= kinds + functions AND NOT EXISTS (
                SELECT FROM usage AS u WHERE (u.hour, u.function, u.tenant, u.downstreams)
                = (row.hour, row.function, row.tenant, row.downstreams)
            ) THEN
                row.function := others;
                row.downstreams := substring(row.downstreams FROM '#.*$');
                row.downstreams := coalesce(row.downstreams, '');
            END IF;
        END IF;
        INSERT INTO usage AS u VALUES (row.hour, row.function, row.tenant, row.downstreams, row.items, row.micros)
            ON CONFLICT (hour, function, tenant, downstreams)
            DO UPDATE SET items = u.items + excluded.items, micros = u.micros + excluded.micros
            RETURNING (xmax = 0)::int INTO fresh;
        known := known + fresh;
    END LOOP;
    DELETE FROM usage AS u WHERE u.hour < below;
    DELETE FROM usage_reports AS r WHERE r.hour < below;
    RETURN true;
END $$;
