-- Rows of a claim are found by their ids alone. A join left the way to the planner: after a vacuum of almost empty tables
-- it read all that was live, once for each claim or settlement, and up to four times the work was done until the next one.
-- Here stands of each function what changes.

DO $do$
DECLARE
    one record;
    was text;
BEGIN
    FOR one IN SELECT * FROM (VALUES
        -- What was moved comes in the order of its ids, so its place in the claim is that of its rank.
        ('queue_claim', $$
            UPDATE tasks AS t SET state = 2, fence = given, claim = claim_number, next_trigger = NULL
            FROM unnest(taken) WITH ORDINALITY AS u (n, place) WHERE t.id = u.n
            RETURNING t.id, t.kind, t.attempts, t.crashes, t.due, u.place
        )
$$, $$
            UPDATE tasks AS t SET state = 2, fence = given, claim = claim_number, next_trigger = NULL
            WHERE t.id = ANY (taken) RETURNING t.id, t.kind, t.attempts, t.crashes, t.due
        ), ranked AS (
            SELECT m.*, row_number() OVER (ORDER BY m.id) AS rank FROM moved AS m
        ), places AS (
            SELECT array_agg(u.place ORDER BY u.n) AS by_rank FROM unnest(taken) WITH ORDINALITY AS u (n, place)
        )
$$),
        ('queue_claim', $$FROM moved AS m JOIN entities AS e ON e.id = m.id ORDER BY m.place;$$,
            $$FROM ranked AS m CROSS JOIN LATERAL (SELECT * FROM entities AS e WHERE e.id = m.id OFFSET 0) AS e
        ORDER BY (SELECT by_rank FROM places)[m.rank];$$),
        ('queue_settle', $$DELETE FROM entities AS e USING gone AS g WHERE e.id = g.id$$,
            $$DELETE FROM entities AS e WHERE e.id = ANY (ARRAY(SELECT g.id FROM gone AS g))$$),
        ('queue_settle', $$FROM given AS g WHERE t.id = g.n RETURNING t.id, t.state$$,
            $$FROM given AS g WHERE t.id = g.n AND t.id = ANY (backs) RETURNING t.id, t.state$$),
        ('queue_settle', $$FROM given AS g WHERE e.id = g.n AND ($$,
            $$FROM given AS g WHERE e.id = g.n AND e.id = ANY (backs) AND ($$),
        ('bury', $$DELETE FROM tasks AS t USING given AS g WHERE t.id = g.n$$,
            $$DELETE FROM tasks AS t USING given AS g WHERE t.id = g.n AND t.id = ANY (numbers)$$),
        ('bury', $$DELETE FROM entities AS e USING gone AS g WHERE e.id = g.id RETURNING$$,
            $$DELETE FROM entities AS e WHERE e.id = ANY (ARRAY(SELECT g.id FROM gone AS g)) RETURNING$$),
        ('queue_renew', $$FROM before AS b WHERE t.id = b.id RETURNING$$,
            $$FROM before AS b WHERE t.id = b.id AND t.id = ANY (held) RETURNING$$),
        ('queue_end_leases', $$FROM before AS b WHERE t.id = b.id RETURNING$$,
            $$FROM before AS b WHERE t.id = b.id AND t.id = ANY (one.ids) RETURNING$$)
    ) AS changes (name, old, new)
    LOOP
        was := pg_get_functiondef(one.name::regproc);
        IF position(one.old IN was) = 0 THEN
            RAISE EXCEPTION 'the function % is not that of the version before', one.name;
        END IF;
        EXECUTE replace(was, one.old, one.new);
    END LOOP;
END $do$;
