-- Tenants take turns at the claim: an index by kind beside the one by time. A lane of which several kinds were used is
-- claimed by steps from kind to kind, from where the claimer stopped; what one tenant has waiting, or what is closed, is
-- passed by one step for each. A lane of one kind is claimed by time, as before. The lanes, kinds and bounds are the
-- caller's, who knows what it looked at. The index costs every write, so it is made when somebody first sees two kinds in
-- a lane, or a closed one.

-- Whether the index of turns is there; it is made where it is not. While that takes, about a second for a million items
-- that wait, nothing is written. Who may not make it, or would wait for long, is told that it is not there.
CREATE FUNCTION queue_turns() RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off
SET lock_timeout TO '1s' AS $$
BEGIN
    IF to_regclass('tasks_turns') IS NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' turns', 11));
        CREATE INDEX IF NOT EXISTS tasks_turns ON tasks (lane, kind, next_trigger, id) WHERE next_trigger IS NOT NULL;
    END IF;
    RETURN true;
EXCEPTION WHEN insufficient_privilege OR lock_not_available OR deadlock_detected OR query_canceled THEN
    RETURN false;
END $$;

DROP FUNCTION queue_look(bigint, int[], bigint[], int[]);
-- The earliest next trigger of each lane, not before its bound; of a lane with kinds that are shut (`partly`), that of
-- the first open kind of which something is due, or else the earliest of the open ones. Reads one index; writes nothing.
CREATE FUNCTION queue_look(at bigint, visits int[], bounds bigint[], shut int[], partly boolean[])
RETURNS TABLE (lane int, earliest bigint, moment bigint) LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off
SET enable_bitmapscan TO off SET enable_sort TO off AS $$
#variable_conflict use_column
DECLARE
    one record;
    low int;
    best bigint;
    found_kind int;
    found_at bigint;
BEGIN
    moment := now_micros(at);
    IF shut = '{}' THEN
        RETURN QUERY SELECT v.l,
            (SELECT t.next_trigger FROM tasks AS t WHERE t.lane = v.l AND t.next_trigger >= v.b
             ORDER BY t.next_trigger LIMIT 1), now_micros(at)
            FROM unnest(visits, bounds) AS v (l, b);
        RETURN;
    END IF;
    FOR one IN SELECT v.l, v.b, v.p FROM unnest(visits, bounds, partly) AS v (l, b, p) LOOP
        lane := one.l;
        IF one.p THEN
            low := 0;
            best := NULL;
            LOOP
                SELECT t.kind, t.next_trigger INTO found_kind, found_at FROM tasks AS t
                    WHERE t.lane = one.l AND t.kind > low AND t.next_trigger IS NOT NULL
                    ORDER BY t.lane, t.kind, t.next_trigger, t.id LIMIT 1;
                EXIT WHEN NOT FOUND;
                low := found_kind;
                IF NOT found_kind = ANY (shut) THEN
                    best := least(best, found_at);
                    EXIT WHEN best <= moment;
                END IF;
            END LOOP;
            earliest := best;
        ELSE
            SELECT t.next_trigger INTO earliest FROM tasks AS t WHERE t.lane = one.l AND t.next_trigger >= one.b
                ORDER BY t.next_trigger LIMIT 1;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

DROP FUNCTION queue_claim(bigint, int[], int[], bigint[], int[], int[], int[], int, bigint, bigint, text);
-- Claims what is due where the timeline is the caller's: each visit is a lane with a limit and the number of its cell (from
-- 1), of which `wanted` says how many may be taken; what some visits did not have goes to those that have more. One item
-- is taken however large it is. `turns`: of each visit the kind whose turn was last, or -1 where the lane is claimed by
-- time. A turn of a kind is a sixteenth of the visit's limit, or a quarter of a small one. Behind the items stand rows with -1 for an id: whose turn
-- was last in each such lane, in the places of the kind and of the attempts.
CREATE FUNCTION queue_claim(
    at bigint, visits int[], limits int[], bounds bigint[], cells int[], wanted int[], shut int[], turns int[], total int,
    room bigint, lease bigint, timeline text
) RETURNS TABLE (
    id bigint, kind int, attempts int, crashes int, payload bytea, key text, headers text, expires_at float8,
    progress text, due bigint, fence bigint, number bigint, moment bigint
) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off
SET enable_bitmapscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_sort TO off AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    taken bigint[] := '{}';
    starts bigint[] := bounds;
    last_ids bigint[] := array_fill(-1::bigint, ARRAY[cardinality(visits)]);
    lasts int[] := turns;
    count_taken int := 0;
    fresh int := 0;
    highest bigint := 0;
    most int;
    got int;
    one record;
    given bigint;
    claim_number bigint;
    low int;
    share int;
    kinds_left int;
    passes int;
    wrapped boolean;
    found_kind int;
    found_at bigint;
    before int;
BEGIN
    IF timeline <> this_timeline() THEN
        RETURN;
    END IF;
    <<rounds>>
    FOR round IN 1..2 LOOP
        FOR v IN 1..cardinality(visits) LOOP
            most := least(total - count_taken, wanted[cells[v]]);
            IF round = 1 THEN
                most := least(most, limits[v]);
            END IF;
            CONTINUE WHEN most <= 0;
            got := 0;
            IF turns[v] < 0 OR (round = 2 AND shut = '{}') THEN
                FOR one IN
                    SELECT t.id, t.size, t.fence, t.state, t.next_trigger FROM tasks AS t
                    WHERE t.lane = visits[v] AND (t.next_trigger, t.id) > (starts[v], last_ids[v])
                      AND t.next_trigger <= now_at AND (turns[v] < 0 OR t.id <> ALL (taken))
                      AND (shut = '{}' OR NOT t.kind = ANY (shut))
                    ORDER BY t.next_trigger, t.id LIMIT most FOR UPDATE SKIP LOCKED
                LOOP
                    EXIT rounds WHEN room < one.size AND count_taken > 0;
                    room := room - one.size;
                    taken := taken || one.id;
                    count_taken := count_taken + 1;
                    got := got + 1;
                    fresh := fresh + (one.state = 0)::int;
                    highest := greatest(highest, one.fence);
                    starts[v] := one.next_trigger;
                    last_ids[v] := one.id;
                    EXIT rounds WHEN room <= 0;
                END LOOP;
            ELSE
                -- Once round the lane's kinds, at most sixteen of which have a turn (four of fewer items than that); the
                -- second time, where some are shut, all that are open give what they have. What is only passed costs a
                -- bounded number of steps.
                low := lasts[v];
                wrapped := false;
                passes := 0;
                kinds_left := CASE WHEN round = 2 THEN 1024 WHEN most >= 16 THEN 16 ELSE 4 END;
                share := CASE WHEN round = 2 THEN most WHEN most >= 16 THEN most / 16 ELSE (most + 3) / 4 END;
                LOOP
                    EXIT WHEN got >= most OR kinds_left <= 0 OR (passes >= 64 AND (count_taken > 0 OR shut = '{}'));
                    SELECT t.kind, t.next_trigger INTO found_kind, found_at FROM tasks AS t
                        WHERE t.lane = visits[v] AND t.kind > low AND t.next_trigger IS NOT NULL
                        ORDER BY t.lane, t.kind, t.next_trigger, t.id LIMIT 1;
                    IF NOT FOUND THEN
                        EXIT WHEN wrapped;
                        wrapped := true;
                        low := 0;
                        CONTINUE;
                    END IF;
                    EXIT WHEN wrapped AND found_kind > lasts[v];
                    low := found_kind;
                    IF found_at > now_at OR found_kind = ANY (shut) THEN
                        passes := passes + 1;
                        CONTINUE;
                    END IF;
                    before := got;
                    FOR one IN
                        SELECT t.id, t.size, t.fence, t.state, t.next_trigger FROM tasks AS t
                        WHERE t.lane = visits[v] AND t.kind = found_kind AND t.next_trigger <= now_at
                          AND (round = 1 OR t.id <> ALL (taken))
                        ORDER BY t.lane, t.kind, t.next_trigger, t.id LIMIT least(share, most - got)
                        FOR UPDATE SKIP LOCKED
                    LOOP
                        IF room < one.size AND count_taken > 0 THEN
                            -- Whose first item there was no room for has the next turn.
                            lasts[v] := CASE WHEN got > before THEN found_kind ELSE found_kind - 1 END;
                            EXIT rounds;
                        END IF;
                        room := room - one.size;
                        taken := taken || one.id;
                        count_taken := count_taken + 1;
                        got := got + 1;
                        fresh := fresh + (one.state = 0)::int;
                        highest := greatest(highest, one.fence);
                        IF room <= 0 THEN
                            lasts[v] := found_kind;
                            EXIT rounds;
                        END IF;
                    END LOOP;
                    IF got = before THEN
                        passes := passes + 1;
                    ELSE
                        kinds_left := kinds_left - 1;
                    END IF;
                END LOOP;
                lasts[v] := low;
            END IF;
            wanted[cells[v]] := wanted[cells[v]] - got;
        END LOOP;
    END LOOP;
    IF count_taken > 0 THEN
        -- Two claims in one µs may bear one number; of every item it rises all the same.
        given := nextval('fences');
        IF given < greatest(now_at, highest + 1) THEN
            given := greatest(now_at, highest + 1);
            PERFORM setval('fences', given);
        END IF;
        claim_number := nextval('claim_numbers');
        INSERT INTO claims (number, until, lease, ids) VALUES (claim_number, now_at + lease, lease, taken);
        INSERT INTO counts (state, items) VALUES (2, count_taken), (0, -fresh), (1, fresh - count_taken);
        RETURN QUERY
            WITH moved AS (
                UPDATE tasks AS t SET state = 2, fence = given, claim = claim_number, next_trigger = NULL
                WHERE t.id = ANY (taken) RETURNING t.id, t.kind, t.attempts, t.crashes, t.due
            ), ranked AS (
                SELECT m.*, row_number() OVER (ORDER BY m.id) AS rank FROM moved AS m
            ), places AS (
                SELECT array_agg(u.place ORDER BY u.n) AS by_rank FROM unnest(taken) WITH ORDINALITY AS u (n, place)
            )
            SELECT m.id, m.kind, m.attempts, m.crashes, e.payload, e.key, e.headers, e.expires_at, e.progress, m.due,
                given, claim_number, now_at
            FROM ranked AS m CROSS JOIN LATERAL (SELECT * FROM entities AS e WHERE e.id = m.id OFFSET 0) AS e
            ORDER BY (SELECT by_rank FROM places)[m.rank];
    END IF;
    FOR v IN 1..cardinality(visits) LOOP
        CONTINUE WHEN turns[v] < 0;
        id := -1;
        kind := lasts[v];
        attempts := visits[v];
        RETURN NEXT;
    END LOOP;
END $$;

-- queue_submit_and_claim calls it: the same but for its turns.
DO $do$
DECLARE
    was text := pg_get_functiondef('queue_submit_and_claim'::regproc);
    one record;
BEGIN
    FOR one IN SELECT * FROM (VALUES
        ('shut integer[], total integer', 'shut integer[], turns integer[], total integer'),
        ('cells, wanted, shut, total, room, lease, timeline', 'cells, wanted, shut, turns, total, room, lease, timeline')
    ) AS changes (old, new) LOOP
        IF position(one.old IN was) = 0 THEN
            RAISE EXCEPTION 'the function queue_submit_and_claim is not that of the version before';
        END IF;
        was := replace(was, one.old, one.new);
    END LOOP;
    DROP FUNCTION queue_submit_and_claim;
    EXECUTE was;
END $do$;
