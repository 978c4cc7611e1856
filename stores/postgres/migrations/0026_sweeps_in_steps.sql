-- What has ended is forgotten in steps of a bounded length, each a transaction of its own: with as much as is kept by
-- default, one for all of it took longer than a call may, so that nothing was ever forgotten again.

ALTER TABLE slots ADD COLUMN cleared bigint NOT NULL DEFAULT -1; -- up to which id nothing stands beside its items

-- Folds the counts, and takes one step: what stands beside the next 20,000 items of a slot that is to be emptied, or the
-- slot itself, which is locked for no longer than it takes to empty it. Returns how many items that was; 0: nothing more
-- is to be forgotten.
CREATE OR REPLACE FUNCTION queue_sweep(at bigint, retention bigint, keep_ended bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET lock_timeout TO '500ms' SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    here record;
    one record;
    total bigint;
    beside bigint[];
    removed bigint;
    next_slot smallint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' sweep', 11)) THEN
        RETURN 0;
    END IF;
    UPDATE claims AS c SET until = now_at + c.lease WHERE c.until > now_at + c.lease + 1000000; -- the clock was set back
    WITH summed AS (DELETE FROM counts RETURNING state, slot, items)
    INSERT INTO counts (state, slot, items)
        SELECT state, slot, sum(items) FROM summed GROUP BY state, slot HAVING sum(items) <> 0;
    UPDATE filling SET since = now_at WHERE since = 0;
    SELECT f.slot, f.since, coalesce((SELECT sum(items) FROM counts AS c WHERE c.slot = f.slot), 0) AS items
        INTO here FROM filling AS f;
    next_slot := (here.slot + 1) % 10;
    SELECT coalesce(sum(items), 0) INTO total FROM counts AS c WHERE c.slot >= 0;
    FOR one IN
        SELECT s.slot, s.filled_until, s.cleared,
            coalesce((SELECT sum(items) FROM counts AS c WHERE c.slot = s.slot), 0) AS items
        FROM slots AS s WHERE s.slot <> here.slot ORDER BY s.filled_until
    LOOP
        CONTINUE WHEN one.items = 0;
        CONTINUE WHEN total <= keep_ended AND one.filled_until > now_at - retention AND one.slot <> next_slot;
        SELECT array_agg(e.id) INTO beside FROM (
            SELECT id FROM ended WHERE slot = one.slot AND flags & 24 <> 0 AND id > one.cleared ORDER BY id LIMIT 20000
        ) AS e;
        DELETE FROM dedupe AS d WHERE d.id = ANY (beside);
        DELETE FROM tries AS t WHERE t.id = ANY (beside);
        IF cardinality(beside) = 20000 THEN
            UPDATE slots SET cleared = (SELECT max(id) FROM unnest(beside) AS id) WHERE slot = one.slot;
            RETURN 20000;
        END IF;
        EXECUTE format('LOCK TABLE ended_%s IN ACCESS EXCLUSIVE MODE', one.slot);
        SELECT sum(items) INTO removed FROM counts AS c WHERE c.slot = one.slot;
        INSERT INTO counts (state, slot, items)
            SELECT c.state, c.slot, -sum(c.items) FROM counts AS c WHERE c.slot = one.slot GROUP BY c.state, c.slot;
        INSERT INTO counts (state, items) VALUES (101, removed);
        EXECUTE format('TRUNCATE ended_%s', one.slot);
        UPDATE slots SET cleared = -1 WHERE slot = one.slot;
        RETURN removed;
    END LOOP;
    IF here.items > 0 AND (here.items * 4 >= keep_ended OR now_at - here.since >= retention / 4) THEN
        UPDATE slots SET filled_until = now_at WHERE slot = here.slot;
        UPDATE filling SET slot = next_slot, since = now_at;
    END IF;
    RETURN 0;
EXCEPTION WHEN lock_not_available THEN
    RETURN 0; -- somebody reads there: next time
END $$;
