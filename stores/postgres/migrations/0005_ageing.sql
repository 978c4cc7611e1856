-- How old what waits is: the highest attempt of each lane has an index of its own, which healthy items never touch.

CREATE INDEX tasks_tried ON tasks (lane, attempts) WHERE attempts > 0;

-- Of each lane for how many microseconds its oldest due item has waited (0: none is due), and its highest attempt.
CREATE FUNCTION queue_ageing(at bigint) RETURNS TABLE (function text, priority int, waited bigint, attempts int)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
    SELECT l.function, l.priority, greatest(0, max(now_micros(at) - o.oldest)), coalesce(max(t.highest), 0)
    FROM lanes AS l
    LEFT JOIN LATERAL (SELECT i.next_trigger AS oldest FROM tasks AS i
        WHERE i.lane = l.lane AND i.next_trigger IS NOT NULL ORDER BY i.next_trigger LIMIT 1) AS o ON true
    LEFT JOIN LATERAL (SELECT i.attempts AS highest FROM tasks AS i
        WHERE i.lane = l.lane AND i.attempts > 0 ORDER BY i.attempts DESC LIMIT 1) AS t ON true
    GROUP BY l.function, l.priority
$$;
