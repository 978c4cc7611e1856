-- What was used once costs nothing: lanes in which something waits are found by the index of what waits, each by one step
-- from the one before it, instead of asking for every lane that ever was.

-- The lanes in which something waits, without the `known` ones (in rising order), whose entries are not walked over.
CREATE FUNCTION queue_stocked(known int[]) RETURNS SETOF int LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off
SET enable_bitmapscan TO off SET enable_sort TO off AS $$
DECLARE
    low int := 0;
    border int;
    found_lane int;
BEGIN
    FOREACH border IN ARRAY known || 2147483647 LOOP
        WHILE border > low + 1 LOOP
            SELECT t.lane INTO found_lane FROM tasks AS t
                WHERE t.next_trigger IS NOT NULL AND t.lane > low AND t.lane < border
                ORDER BY t.lane, t.next_trigger, t.id LIMIT 1;
            EXIT WHEN found_lane IS NULL;
            RETURN NEXT found_lane;
            low := found_lane;
        END LOOP;
        low := border;
    END LOOP;
END $$;

-- The lanes of which a live item was tried.
CREATE FUNCTION queue_tried() RETURNS SETOF int LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off
SET enable_bitmapscan TO off SET enable_sort TO off AS $$
DECLARE
    low int := 0;
BEGIN
    LOOP
        SELECT t.lane INTO low FROM tasks AS t WHERE t.attempts > 0 AND t.lane > low
            ORDER BY t.lane, t.attempts LIMIT 1;
        EXIT WHEN low IS NULL;
        RETURN NEXT low;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION queue_ageing(at bigint)
RETURNS TABLE (function text, priority int, waited bigint, attempts int)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off SET enable_hashjoin TO off
SET enable_mergejoin TO off AS $$
    SELECT l.function, l.priority, greatest(0, max(now_micros(at) - o.oldest)), coalesce(max(t.highest), 0)
    FROM (SELECT s FROM queue_stocked('{}') AS s UNION SELECT s FROM queue_tried() AS s) AS seen (lane)
    JOIN lanes AS l ON l.lane = seen.lane
    LEFT JOIN LATERAL (SELECT i.next_trigger AS oldest FROM tasks AS i
        WHERE i.lane = l.lane AND i.next_trigger IS NOT NULL ORDER BY i.next_trigger LIMIT 1) AS o ON true
    LEFT JOIN LATERAL (SELECT i.attempts AS highest FROM tasks AS i
        WHERE i.lane = l.lane AND i.attempts > 0 ORDER BY i.attempts DESC LIMIT 1) AS t ON true
    GROUP BY l.function, l.priority
$$;

CREATE OR REPLACE FUNCTION queue_due(at bigint, most int) RETURNS TABLE (function text, items bigint) LANGUAGE sql STABLE
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off SET enable_hashjoin TO off
SET enable_mergejoin TO off AS $$
    SELECT l.function, sum((SELECT count(*) FROM (SELECT 1 FROM tasks AS t WHERE t.lane = l.lane
        AND t.next_trigger <= now_micros(at) LIMIT most) AS found))::bigint AS items
    FROM queue_stocked('{}') AS s (lane) JOIN lanes AS l ON l.lane = s.lane GROUP BY l.function
$$;
