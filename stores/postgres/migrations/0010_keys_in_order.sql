-- Who locks several keys locks them together, in one order: the end of leases took those of one claim after those of
-- another, and rows of an outbox that are moved one by one were too. A settlement of several keys then met them in a
-- deadlock, which PostgreSQL ends after a second by making one of them begin anew.

CREATE OR REPLACE FUNCTION queue_end_leases(at bigint, ending boolean)
RETURNS TABLE (moment bigint, soonest bigint, claims_ended int, troubles text) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    one record;
    over bigint[];
    numbers bigint[];
    items bigint[];
BEGIN
    moment := now_micros(at);
    claims_ended := 0;
    troubles := '';
    IF ending THEN
        SELECT array_agg(c.number) INTO numbers FROM
            (SELECT c.number FROM claims AS c WHERE c.until <= moment ORDER BY c.until LIMIT 100
             FOR UPDATE SKIP LOCKED) AS c;
        BEGIN
            SELECT array_agg(i) INTO items FROM claims AS c, unnest(c.ids) AS i WHERE c.number = ANY (numbers);
            PERFORM lock_keys_of(items);
        EXCEPTION WHEN OTHERS THEN
            troubles := SQLERRM;
            numbers := NULL;
        END;
        FOR one IN SELECT c.number, c.ids FROM claims AS c WHERE c.number = ANY (numbers) ORDER BY c.until LOOP
            BEGIN
                SELECT array_agg(t.id) INTO over FROM tasks AS t
                    WHERE t.id = ANY (one.ids) AND t.claim = one.number AND t.flags & 2 <> 0;
                IF over IS NOT NULL THEN
                    PERFORM bury(moment, over, array_agg(12::smallint), array_agg(0), array_agg(0),
                        array_agg('cancelled'::text), array_agg(''::text), 1) FROM unnest(over);
                    PERFORM release_keys(over);
                END IF;
                WITH before AS (
                    SELECT t.id, t.state FROM tasks AS t
                    WHERE t.id = ANY (one.ids) AND t.claim = one.number FOR UPDATE
                ), moved AS (
                    UPDATE tasks AS t SET state = (t.attempts > 0)::int, claim = NULL, fence = t.fence + 1,
                        next_trigger = least(t.due, moment), due = least(t.due, moment)
                    FROM before AS b WHERE t.id = b.id RETURNING t.state
                )
                INSERT INTO counts (state, items)
                    SELECT state, -count(*) FROM before GROUP BY state
                    UNION ALL SELECT state, count(*) FROM moved GROUP BY state;
                DELETE FROM claims AS c WHERE c.number = one.number;
                claims_ended := claims_ended + 1;
            EXCEPTION WHEN OTHERS THEN
                troubles := SQLERRM;
            END;
        END LOOP;
    END IF;
    SELECT min(c.until) INTO soonest FROM claims AS c;
    RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION queue_collect(at bigint, most int, max_payload int, max_waiting bigint)
RETURNS TABLE (moved int, troubles text) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
#variable_conflict use_column
DECLARE
    places bigint[];
    one bigint;
BEGIN
    moved := 0;
    troubles := '';
    IF EXISTS (SELECT 1 FROM outbox WHERE reason = '')
        AND pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' outbox', 11))
    THEN
        most := least(most, max_waiting - coalesce((SELECT sum(items) FROM counts WHERE state < 10), 0));
        IF most <= 0 THEN
            troubles := 'the queue is full: rows wait where they are';
            RETURN NEXT;
            RETURN;
        END IF;
        SELECT array_agg(place ORDER BY place) INTO places FROM (
            SELECT place, sum(length(payload)) OVER (ORDER BY place) - length(payload) AS before
            FROM (SELECT place, payload FROM outbox WHERE reason = '' ORDER BY place LIMIT most) AS oldest
        ) AS summed WHERE before < 8388608;
        moved := cardinality(places);
        BEGIN
            PERFORM move_rows(now_micros(at), places, max_payload);
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN
            PERFORM lock_keys(array_agg(DISTINCT key)) FROM outbox WHERE place = ANY (places) AND key <> '';
            FOREACH one IN ARRAY places LOOP
                BEGIN
                    PERFORM move_rows(now_micros(at), ARRAY[one], max_payload);
                EXCEPTION
                    WHEN unique_violation THEN -- its id is taken: the next time under another one
                        UPDATE outbox SET id = new_id() WHERE place = one;
                    WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN
                        UPDATE outbox SET reason = coalesce(nullif(left(SQLERRM, 500), ''), SQLSTATE) WHERE place = one;
                        troubles := SQLERRM;
                END;
            END LOOP;
        END;
    END IF;
    RETURN NEXT;
END $$;
