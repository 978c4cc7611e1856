-- The queue in PostgreSQL: its tables, and its verbs as functions, so that each is one statement, one transaction and
-- one trip, also through a pooler that gives every transaction another connection. Nothing here needs a session.
--
-- Times are µs since 1970 by this server's clock; `at` NULL means now (tests give their own). States are the numbers of
-- model/claim.py, flags those of stores/queue/postgres_rows.py. Locks are taken in one order everywhere: claims,
-- keys, tasks.

CREATE SEQUENCE fences;
CREATE SEQUENCE claim_numbers;

CREATE TABLE lanes (
    lane int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    function text NOT NULL,
    priority int NOT NULL,
    collection text NOT NULL,
    UNIQUE (function, priority, collection)
);

CREATE TABLE kinds (
    kind int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane int NOT NULL REFERENCES lanes,
    tenant text NOT NULL,
    UNIQUE (lane, tenant)
);

-- What has not ended. A narrow row, which is polled and moved; payloads rest in `entities`. What is out has no next
-- trigger of its own: it is the end of its claim's lease. The index is of what waits alone, so that a claim takes rows
-- out of it and puts them into no other, and a change of phase stays on its page.
CREATE TABLE tasks (
    id bigint PRIMARY KEY CHECK (id >= 0),
    next_trigger bigint,
    due bigint NOT NULL, -- the last next_trigger it had
    fence bigint NOT NULL DEFAULT 0,
    claim bigint,
    lane int NOT NULL,
    kind int NOT NULL,
    size int NOT NULL,
    attempts int NOT NULL DEFAULT 0,
    crashes int NOT NULL DEFAULT 0,
    throttles int NOT NULL DEFAULT 0,
    state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4),
    flags smallint NOT NULL DEFAULT 0,
    CONSTRAINT waits_for_a_moment CHECK ((next_trigger IS NOT NULL) = (state < 2)),
    CONSTRAINT out_by_a_claim CHECK ((claim IS NOT NULL) = (state >= 2))
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2);
CREATE INDEX tasks_live ON tasks (lane, next_trigger, id) WHERE next_trigger IS NOT NULL;

-- The table of stores/queue/lifecycle.py, for every writer: a hand-out has a higher fence, no fence goes back, a phase
-- neither, and what waits for an older one of its key is not handed out.
CREATE FUNCTION refuse_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'workload % may not move from state % under fence % to state % under fence %',
        OLD.id, OLD.state, OLD.fence, NEW.state, NEW.fence USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER only_legal_moves BEFORE UPDATE ON tasks FOR EACH ROW WHEN (
    NEW.id <> OLD.id
    OR NEW.fence < OLD.fence
    OR (NEW.state = 2 AND OLD.state <> 2 AND (NEW.fence = OLD.fence OR OLD.next_trigger = 4611686018427387903))
    OR (NEW.state > 2 AND (NEW.state < OLD.state OR OLD.state < 2 OR NEW.fence <> OLD.fence))
) EXECUTE FUNCTION refuse_move();

CREATE TABLE entities (
    id bigint PRIMARY KEY,
    payload bytea NOT NULL,
    key text NOT NULL DEFAULT '',
    headers text NOT NULL DEFAULT '',
    expires_at float8 NOT NULL DEFAULT 0,
    reason text NOT NULL DEFAULT '',
    progress text NOT NULL DEFAULT ''
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- How attempts went that were not the last: [[when, outcome, reason], …].
CREATE TABLE tries (id bigint PRIMARY KEY, tries jsonb NOT NULL);

-- A claim is the lease of all that was handed out together. A holder that renews only some of it splits the row.
CREATE TABLE claims (
    number bigint PRIMARY KEY,
    until bigint NOT NULL,
    lease bigint NOT NULL, -- for how long, µs: a clock that is set back prolongs none beyond it
    ids bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX claims_until ON claims (until);

-- Live items with a key, in the order in which they were submitted. Only the head of a key may be leased: one at most.
CREATE TABLE keyed (
    key text NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    id bigint NOT NULL UNIQUE,
    due bigint NOT NULL,
    head boolean NOT NULL,
    PRIMARY KEY (key, place)
);
CREATE UNIQUE INDEX one_head_per_key ON keyed (key) WHERE head;

CREATE TABLE dedupe (function text NOT NULL, key text NOT NULL, id bigint NOT NULL UNIQUE, PRIMARY KEY (function, key));

-- What has ended, in slots that are filled one after the other and emptied whole: forgetting costs no vacuum.
CREATE TABLE ended (
    slot smallint NOT NULL,
    id bigint NOT NULL,
    kind int NOT NULL,
    state smallint NOT NULL CHECK (state BETWEEN 10 AND 14),
    flags smallint NOT NULL,
    attempts int NOT NULL,
    crashes int NOT NULL,
    fence bigint NOT NULL,
    ended bigint NOT NULL,
    reason text NOT NULL DEFAULT '',
    progress text NOT NULL DEFAULT '',
    PRIMARY KEY (id, slot)
) PARTITION BY LIST (slot);
CREATE TABLE slots (slot smallint PRIMARY KEY, filled_until bigint NOT NULL DEFAULT 0);
DO $$
BEGIN
    FOR n IN 0..9 LOOP
        EXECUTE format('CREATE TABLE ended_%s PARTITION OF ended FOR VALUES IN (%s)', n, n);
        INSERT INTO slots (slot) VALUES (n);
    END LOOP;
END $$;
CREATE TABLE filling (one boolean PRIMARY KEY DEFAULT true CHECK (one), slot smallint NOT NULL, since bigint NOT NULL);
INSERT INTO filling (slot, since) VALUES (0, 0);

-- How many items are in each state: what every transaction added, folded together now and then. State 100: taken, 101:
-- forgotten; slot -1: not ended.
CREATE TABLE counts (state smallint NOT NULL, slot smallint NOT NULL DEFAULT -1, items bigint NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Which server these tables are on, as far as one can tell: after a failover or a restore it is another one.
CREATE TABLE home (one boolean PRIMARY KEY DEFAULT true CHECK (one), known text NOT NULL);

CREATE FUNCTION now_micros(at bigint) RETURNS bigint LANGUAGE sql AS
    'SELECT coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)';

CREATE FUNCTION lock_keys(names text[]) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(each) FROM
        (SELECT DISTINCT hashtextextended(name, 7) AS each FROM unnest(names) AS name ORDER BY 1) AS sorted;
END $$;

CREATE FUNCTION lock_keys_of(numbers bigint[]) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE names text[];
BEGIN
    IF NOT EXISTS (SELECT 1 FROM keyed) THEN
        RETURN false;
    END IF;
    SELECT array_agg(DISTINCT key) INTO names FROM keyed WHERE id = ANY (numbers);
    IF names IS NULL THEN
        RETURN false;
    END IF;
    PERFORM lock_keys(names);
    RETURN true;
END $$;

-- Stores items; answers those that had been submitted before, with the first one's id. Of `tagged` items there is more
-- than a payload, of `deduped` ones a key for that. The last row is (-1, the time that this was).
CREATE FUNCTION queue_submit(
    at bigint, numbers bigint[], item_lanes int[], item_kinds int[], dues bigint[], sizes int[], all_flags smallint[],
    payloads bytea[], tagged bigint[], tag_keys text[], tag_headers text[], tag_expires float8[],
    deduped bigint[], dedupe_functions text[], dedupe_keys text[]
) RETURNS TABLE (item bigint, first bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    moment bigint := now_micros(at);
    again bigint[] := '{}';
    blocked bigint[] := '{}';
    names text[];
    one record;
    is_head boolean;
    added int;
BEGIN
    SELECT array_agg(name) INTO names FROM unnest(tag_keys) AS name WHERE name <> '';
    IF names IS NOT NULL THEN
        PERFORM lock_keys(names);
    END IF;
    IF cardinality(deduped) > 0 THEN
        INSERT INTO dedupe (function, key, id)
            SELECT f, k, n FROM unnest(dedupe_functions, dedupe_keys, deduped) AS d (f, k, n) ORDER BY f, k, n
            ON CONFLICT (function, key) DO NOTHING;
        FOR one IN
            SELECT d.n, e.id FROM unnest(dedupe_functions, dedupe_keys, deduped) AS d (f, k, n)
            JOIN dedupe AS e ON e.function = d.f AND e.key = d.k WHERE e.id <> d.n
        LOOP
            again := again || one.n;
            item := one.n;
            first := one.id;
            RETURN NEXT;
        END LOOP;
    END IF;
    IF names IS NOT NULL THEN
        FOR one IN
            SELECT t.n, t.k, coalesce(nullif(s.d, 0), moment) AS due
            FROM unnest(tagged, tag_keys) AS t (n, k) JOIN unnest(numbers, dues) AS s (n, d) ON s.n = t.n
            WHERE t.k <> '' AND NOT t.n = ANY (again) ORDER BY t.n
        LOOP
            is_head := NOT EXISTS (SELECT 1 FROM keyed WHERE key = one.k);
            INSERT INTO keyed (key, id, due, head) VALUES (one.k, one.n, one.due, is_head);
            IF NOT is_head THEN
                blocked := blocked || one.n;
            END IF;
        END LOOP;
    END IF;
    INSERT INTO tasks (id, lane, kind, size, flags, due, next_trigger)
        SELECT n, l, k, s, f, coalesce(nullif(d, 0), moment), coalesce(nullif(d, 0), moment)
        FROM unnest(numbers, item_lanes, item_kinds, sizes, all_flags, dues) AS i (n, l, k, s, f, d)
        WHERE NOT n = ANY (again);
    GET DIAGNOSTICS added = ROW_COUNT;
    IF cardinality(blocked) > 0 THEN
        UPDATE tasks SET next_trigger = 4611686018427387903 WHERE id = ANY (blocked);
    END IF;
    INSERT INTO entities (id, payload, key, headers, expires_at)
        SELECT i.n, i.p, coalesce(t.k, ''), coalesce(t.h, ''), coalesce(t.e, 0)
        FROM unnest(numbers, payloads) AS i (n, p)
        LEFT JOIN unnest(tagged, tag_keys, tag_headers, tag_expires) AS t (n, k, h, e) ON t.n = i.n
        WHERE NOT i.n = ANY (again);
    IF added > 0 THEN
        INSERT INTO counts (state, items) VALUES (0, added), (100, added);
    END IF;
    item := -1;
    first := moment;
    RETURN NEXT;
END $$;

-- The earliest next trigger of each lane, not before its bound, of kinds that are not shut. Reads one index; writes
-- nothing.
CREATE FUNCTION queue_look(at bigint, visits int[], bounds bigint[], shut int[])
RETURNS TABLE (lane int, earliest bigint, moment bigint) LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off SET enable_bitmapscan TO off AS $$
#variable_conflict use_column
BEGIN
    IF cardinality(shut) = 0 THEN
        RETURN QUERY SELECT v.l,
            (SELECT t.next_trigger FROM tasks AS t WHERE t.lane = v.l AND t.next_trigger >= v.b
             ORDER BY t.next_trigger LIMIT 1), now_micros(at)
            FROM unnest(visits, bounds) AS v (l, b);
    ELSE
        RETURN QUERY SELECT v.l,
            (SELECT t.next_trigger FROM tasks AS t WHERE t.lane = v.l AND t.next_trigger >= v.b
             AND NOT t.kind = ANY (shut) ORDER BY t.next_trigger LIMIT 1), now_micros(at)
            FROM unnest(visits, bounds) AS v (l, b);
    END IF;
END $$;

-- The server's timeline: another one after a failover or a restore to a point in time.
CREATE FUNCTION this_timeline() RETURNS text LANGUAGE sql AS 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)';

-- What tells this server and these tables from others, and how far its log has come.
CREATE FUNCTION this_home() RETURNS TABLE (home text, timeline text, written bigint) LANGUAGE sql
SET search_path FROM CURRENT AS $$
    SELECT (SELECT system_identifier::text FROM pg_control_system()) || ' ' || this_timeline() || ' '
        || 'tasks'::regclass::oid, this_timeline(), (pg_current_wal_lsn() - '0/0')::bigint
$$;

-- Numbers of new kinds and their lanes; one caller at a time, so that they are seen in the order of their numbers.
CREATE FUNCTION queue_kinds(functions text[], priorities int[], collections text[], tenants text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' kinds', 11));
    INSERT INTO lanes (function, priority, collection)
        SELECT DISTINCT f, p, c FROM unnest(functions, priorities, collections) AS g (f, p, c) ON CONFLICT DO NOTHING;
    INSERT INTO kinds (lane, tenant)
        SELECT DISTINCT l.lane, g.t FROM unnest(functions, priorities, collections, tenants) AS g (f, p, c, t)
        JOIN lanes AS l ON l.function = g.f AND l.priority = g.p AND l.collection = g.c ON CONFLICT DO NOTHING;
END $$;

-- Claims what is due where the timeline is the caller's: each visit is a lane with a limit and the number of its cell (from 1), of which `wanted` says how
-- many may be taken; what some visits did not have goes to those that have more. One item is taken however large it is.
CREATE FUNCTION queue_claim(
    at bigint, visits int[], limits int[], bounds bigint[], cells int[], wanted int[], shut int[], total int,
    room bigint, lease bigint, timeline text
) RETURNS TABLE (
    id bigint, kind int, attempts int, crashes int, payload bytea, key text, headers text, expires_at float8,
    progress text, due bigint, fence bigint, number bigint, moment bigint
) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off SET enable_bitmapscan TO off SET enable_hashjoin TO off
SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    taken bigint[] := '{}';
    starts bigint[] := bounds;
    last_ids bigint[] := array_fill(-1::bigint, ARRAY[cardinality(visits)]);
    count_taken int := 0;
    fresh int := 0;
    highest bigint := 0;
    most int;
    got int;
    one record;
    given bigint;
    claim_number bigint;
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
            FOR one IN
                SELECT t.id, t.size, t.fence, t.state, t.next_trigger FROM tasks AS t
                WHERE t.lane = visits[v] AND (t.next_trigger, t.id) > (starts[v], last_ids[v])
                  AND t.next_trigger <= now_at AND (shut = '{}' OR NOT t.kind = ANY (shut))
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
            wanted[cells[v]] := wanted[cells[v]] - got;
        END LOOP;
    END LOOP;
    IF count_taken = 0 THEN
        RETURN;
    END IF;
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
            FROM unnest(taken) WITH ORDINALITY AS u (n, place) WHERE t.id = u.n
            RETURNING t.id, t.kind, t.attempts, t.crashes, t.due, u.place
        )
        SELECT m.id, m.kind, m.attempts, m.crashes, e.payload, e.key, e.headers, e.expires_at, e.progress, m.due, given,
            claim_number, now_at
        FROM moved AS m JOIN entities AS e ON e.id = m.id ORDER BY m.place;
END $$;

-- Prolongs the leases of those items that are out under the fence; answers them, and whether each is to be cancelled.
CREATE FUNCTION queue_renew(at bigint, numbers bigint[], renewed_fence bigint, lease_micros bigint, phase smallint)
RETURNS TABLE (id bigint, cancel boolean, claim bigint, until bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    one record;
    held bigint[];
    part bigint;
BEGIN
    FOR one IN
        SELECT c.number, c.until, c.ids FROM claims AS c WHERE c.number IN
            (SELECT t.claim FROM tasks AS t WHERE t.id = ANY (numbers) AND t.fence = renewed_fence AND t.state >= 2)
        ORDER BY c.number FOR UPDATE
    LOOP
        SELECT array_agg(t.id) INTO held FROM tasks AS t WHERE t.id = ANY (numbers) AND t.claim = one.number;
        CONTINUE WHEN held IS NULL;
        part := one.number;
        IF EXISTS (SELECT 1 FROM tasks AS t
                   WHERE t.id = ANY (one.ids) AND t.claim = one.number AND NOT t.id = ANY (held)) THEN
            part := nextval('claim_numbers');
            INSERT INTO claims (number, until, lease, ids)
                VALUES (part, greatest(one.until, now_at + lease_micros), lease_micros, held);
            UPDATE tasks AS t SET claim = part WHERE t.id = ANY (held);
        ELSE
            UPDATE claims AS c SET until = greatest(c.until, now_at + lease_micros), lease = lease_micros
                WHERE c.number = one.number;
        END IF;
        WITH before AS (
            SELECT t.id, t.state FROM tasks AS t WHERE t.id = ANY (held) AND t.claim = part AND t.state < phase FOR UPDATE
        ), moved AS (
            UPDATE tasks AS t SET state = phase FROM before AS b WHERE t.id = b.id RETURNING b.state
        ), summed AS (
            SELECT state, count(*) AS n FROM moved GROUP BY state
        )
        INSERT INTO counts (state, items)
            SELECT state, -n FROM summed UNION ALL SELECT phase, sum(n) FROM summed HAVING sum(n) > 0;
        RETURN QUERY SELECT t.id, t.flags & 2 <> 0, part, now_at + lease_micros
            FROM tasks AS t WHERE t.id = ANY (held) AND t.claim = part;
    END LOOP;
END $$;

-- The next item of each ended one's key is due when it was to be. Whether there was one.
CREATE FUNCTION release_keys(over bigint[]) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    name text;
    one record;
    found_one boolean := false;
BEGIN
    FOR name IN WITH gone AS (DELETE FROM keyed WHERE id = ANY (over) RETURNING key) SELECT DISTINCT key FROM gone LOOP
        CONTINUE WHEN EXISTS (SELECT 1 FROM keyed WHERE key = name AND head);
        SELECT k.id, k.place, k.due INTO one FROM keyed AS k WHERE k.key = name ORDER BY k.place LIMIT 1;
        CONTINUE WHEN NOT FOUND;
        UPDATE keyed SET head = true WHERE key = name AND place = one.place;
        UPDATE tasks SET next_trigger = one.due, due = one.due WHERE id = one.id AND state < 2;
        found_one := true;
    END LOOP;
    RETURN found_one;
END $$;

-- Moves live items to the ended ones. `raised` is added to their fence, so that a former holder is refused.
CREATE FUNCTION bury(
    now_at bigint, numbers bigint[], states smallint[], all_attempts int[], all_crashes int[], reasons text[],
    progresses text[], raised int
) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    into_slot smallint;
BEGIN
    SELECT slot INTO into_slot FROM filling;
    WITH given AS (
        SELECT * FROM unnest(numbers, states, all_attempts, all_crashes, reasons, progresses) AS g (n, s, a, c, r, p)
    ), gone AS (
        DELETE FROM tasks AS t USING given AS g WHERE t.id = g.n
        RETURNING t.id, t.kind, t.state AS before, g.s, t.flags, greatest(t.attempts, g.a) AS a,
            greatest(t.crashes, g.c) AS c, t.fence, g.r, g.p
    ), emptied AS (
        DELETE FROM entities AS e USING gone AS g WHERE e.id = g.id RETURNING e.id, e.reason, e.progress
    ), kept AS (
        INSERT INTO ended (slot, id, kind, state, flags, attempts, crashes, fence, ended, reason, progress)
            SELECT into_slot, g.id, g.kind, g.s, g.flags, g.a, g.c, g.fence + raised, now_at,
                coalesce(nullif(g.r, ''), e.reason), coalesce(nullif(g.p, ''), e.progress)
            FROM gone AS g JOIN emptied AS e ON e.id = g.id
    )
    INSERT INTO counts (state, slot, items)
        SELECT before, -1, -count(*) FROM gone GROUP BY before
        UNION ALL SELECT s, into_slot, count(*) FROM gone GROUP BY s;
END $$;

-- Ends hand-outs of one claim: `succeeded` ones plainly, the others as their columns say. Claims that are over with this
-- go first. Answers the ids that were refused, and whether something waits again that may be due.
CREATE FUNCTION queue_settle(
    at bigint, settled_fence bigint, succeeded bigint[], over_claims bigint[], numbers bigint[], states smallint[],
    delays bigint[], all_attempts int[], all_crashes int[], all_throttles int[], reasons text[], progresses text[],
    outcomes text[]
) RETURNS TABLE (refused bigint[], again boolean) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    keys_locked boolean;
    into_slot smallint;
    done bigint[];
    by_state bigint[];
    backs bigint[];
    ends bigint[];
BEGIN
    refused := '{}';
    again := false;
    IF over_claims <> '{}' THEN
        DELETE FROM claims AS c WHERE c.number = ANY (over_claims);
    END IF;
    keys_locked := lock_keys_of(succeeded || numbers);
    IF succeeded <> '{}' THEN
        SELECT slot INTO into_slot FROM filling;
        WITH gone AS (
            DELETE FROM tasks AS t WHERE t.id = ANY (succeeded) AND t.fence = settled_fence AND t.state >= 2
            RETURNING t.id, t.kind, t.state, t.flags, t.attempts, t.crashes
        ), emptied AS (
            DELETE FROM entities AS e USING gone AS g WHERE e.id = g.id
        ), kept AS (
            INSERT INTO ended (slot, id, kind, state, flags, attempts, crashes, fence, ended)
                SELECT into_slot, g.id, g.kind, 10, g.flags, g.attempts, g.crashes, settled_fence, now_at FROM gone AS g
        )
        SELECT array_agg(id), ARRAY[count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
            count(*) FILTER (WHERE state = 4), count(*)] INTO done, by_state FROM gone;
        IF done IS NOT NULL THEN
            INSERT INTO counts (state, slot, items) VALUES (10, into_slot, by_state[4]);
            INSERT INTO counts (state, items)
                SELECT s, -n FROM unnest('{2,3,4}'::smallint[], by_state[1:3]) AS b (s, n) WHERE n > 0;
            IF keys_locked THEN
                again := release_keys(done);
            END IF;
        END IF;
        IF done IS NULL OR cardinality(done) < cardinality(succeeded) THEN
            SELECT coalesce(array_agg(s.n), '{}') INTO refused FROM unnest(succeeded) AS s (n)
            WHERE NOT s.n = ANY (coalesce(done, '{}')) AND NOT EXISTS
                (SELECT 1 FROM ended AS e WHERE e.id = s.n AND e.fence = settled_fence AND e.state = 10);
        END IF;
    END IF;
    IF numbers <> '{}' THEN
        -- Who asked for its cancellation has it when it would go back.
        SELECT array_agg(t.id) FILTER (WHERE g.s < 2 AND t.flags & 2 = 0),
               array_agg(t.id) FILTER (WHERE g.s >= 10 OR t.flags & 2 <> 0)
            INTO backs, ends
            FROM (SELECT t.id, t.flags FROM tasks AS t WHERE t.id = ANY (numbers) AND t.fence = settled_fence
                  AND t.state >= 2 FOR UPDATE) AS t
            JOIN unnest(numbers, states) AS g (n, s) ON g.n = t.id WHERE g.s < 2 OR g.s >= 10;
        -- Those of before that say the same again are not refused.
        refused := refused || (
            SELECT coalesce(array_agg(g.n), '{}') FROM unnest(numbers, states) AS g (n, s)
            WHERE NOT g.n = ANY (coalesce(backs, '{}')) AND NOT g.n = ANY (coalesce(ends, '{}'))
              AND NOT EXISTS (SELECT 1 FROM tasks AS t
                              WHERE t.id = g.n AND t.fence = settled_fence AND t.state = g.s AND t.state < 2)
              AND NOT EXISTS (SELECT 1 FROM ended AS e WHERE e.id = g.n AND e.fence = settled_fence
                              AND e.state = CASE WHEN e.flags & 2 <> 0 AND g.s < 2 THEN 12 ELSE g.s END));
        IF backs IS NOT NULL THEN
            WITH given AS (
                SELECT * FROM unnest(numbers, states, delays, all_attempts, all_crashes, all_throttles, reasons,
                    progresses, outcomes) AS g (n, s, d, a, c, h, r, p, o) WHERE g.n = ANY (backs)
            ), before AS (
                SELECT t.id, t.state FROM tasks AS t WHERE t.id = ANY (backs)
            ), moved AS (
                UPDATE tasks AS t SET state = g.s, claim = NULL,
                    next_trigger = CASE WHEN g.d > 0 THEN now_at + g.d ELSE least(t.due, now_at) END,
                    due = CASE WHEN g.d > 0 THEN now_at + g.d ELSE least(t.due, now_at) END,
                    attempts = greatest(t.attempts, g.a), crashes = greatest(t.crashes, g.c),
                    throttles = greatest(t.throttles, g.h),
                    flags = t.flags | (g.p <> '')::int::smallint | CASE WHEN g.o <> '' THEN 16::smallint ELSE 0 END
                FROM given AS g WHERE t.id = g.n RETURNING t.id, t.state
            ), told AS (
                UPDATE entities AS e SET reason = coalesce(nullif(g.r, ''), e.reason),
                    progress = coalesce(nullif(g.p, ''), e.progress)
                FROM given AS g WHERE e.id = g.n AND (g.r <> '' OR g.p <> '')
            ), tried AS (
                INSERT INTO tries AS k (id, tries)
                    SELECT g.n, jsonb_build_array(jsonb_build_array(now_at / 1e6, g.o, left(g.r, 200))) FROM given AS g
                    WHERE g.o <> ''
                    ON CONFLICT (id) DO UPDATE SET tries =
                        CASE WHEN jsonb_array_length(k.tries) >= 10 THEN k.tries - 0 ELSE k.tries END || excluded.tries
            )
            INSERT INTO counts (state, items)
                SELECT state, -count(*) FROM before GROUP BY state
                UNION ALL SELECT state, count(*) FROM moved GROUP BY state;
            again := true;
        END IF;
        IF ends IS NOT NULL THEN
            PERFORM bury(now_at, array_agg(g.n), array_agg(CASE WHEN g.s < 2 THEN 12::smallint ELSE g.s END),
                array_agg(g.a), array_agg(g.c), array_agg(g.r), array_agg(g.p), 0)
                FROM unnest(numbers, states, all_attempts, all_crashes, reasons, progresses) AS g (n, s, a, c, r, p)
                WHERE g.n = ANY (ends);
            IF keys_locked THEN
                again := release_keys(ends) OR again;
            END IF;
        END IF;
    END IF;
    RETURN NEXT;
END $$;

-- Ends what waits, marks what is out; answers as `Queue.cancel` says.
CREATE FUNCTION queue_cancel(at bigint, numbers bigint[]) RETURNS TABLE (answers text[], again boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    wanted bigint;
    found_state smallint;
BEGIN
    answers := '{}';
    again := false;
    PERFORM lock_keys_of(numbers);
    FOREACH wanted IN ARRAY numbers LOOP
        SELECT t.state INTO found_state FROM tasks AS t WHERE t.id = wanted FOR UPDATE;
        IF NOT FOUND THEN
            answers := answers || CASE WHEN EXISTS (SELECT 1 FROM ended AS e WHERE e.id = wanted)
                THEN 'ended' ELSE 'unknown' END;
        ELSIF found_state >= 2 THEN
            UPDATE tasks SET flags = flags | 2::smallint WHERE id = wanted;
            answers := answers || 'requested'::text;
        ELSE
            PERFORM bury(now_at, ARRAY[wanted], '{12}', '{0}', '{0}', '{cancelled}', '{""}', 1);
            again := release_keys(ARRAY[wanted]) OR again;
            answers := answers || 'cancelled'::text;
        END IF;
    END LOOP;
    RETURN NEXT;
END $$;

-- Items whose lease is over wait again, first in their lanes, or are cancelled where that was asked; their fence moves
-- on, so that the former holder is refused. With `ending` false it only looks. Answers the time by this clock, when the
-- next lease may end, and how many ended. One claim that cannot be ended holds up no other.
CREATE FUNCTION queue_end_leases(at bigint, ending boolean)
RETURNS TABLE (moment bigint, soonest bigint, claims_ended int, troubles text) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    one record;
    over bigint[];
BEGIN
    moment := now_micros(at);
    claims_ended := 0;
    troubles := '';
    IF ending THEN
        FOR one IN
            SELECT c.number, c.ids FROM claims AS c WHERE c.until <= moment ORDER BY c.until LIMIT 100
            FOR UPDATE SKIP LOCKED
        LOOP
            BEGIN
                PERFORM lock_keys_of(one.ids);
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

-- What each state holds, in all.
CREATE FUNCTION queue_counts() RETURNS TABLE (state smallint, items bigint) LANGUAGE sql STABLE
SET search_path FROM CURRENT AS 'SELECT state, sum(items)::bigint FROM counts GROUP BY state';

-- How many items could be leased now, by function.
CREATE FUNCTION queue_due(at bigint, most int) RETURNS TABLE (function text, items bigint) LANGUAGE sql STABLE
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
    SELECT l.function, sum((SELECT count(*) FROM (SELECT 1 FROM tasks AS t WHERE t.lane = l.lane
        AND t.next_trigger <= now_micros(at) LIMIT most) AS found))::bigint AS items
    FROM lanes AS l GROUP BY l.function
$$;

-- Folds the counts; turns to the next slot when this one is full or old, and empties those that are past their
-- retention. Answers how many items were forgotten.
CREATE FUNCTION queue_sweep(at bigint, retention bigint, keep_ended bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET lock_timeout TO '500ms' AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    here record;
    one record;
    total bigint;
    gone bigint := 0;
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
        SELECT s.slot, s.filled_until, coalesce((SELECT sum(items) FROM counts AS c WHERE c.slot = s.slot), 0) AS items
        FROM slots AS s WHERE s.slot <> here.slot ORDER BY s.filled_until
    LOOP
        CONTINUE WHEN one.items = 0;
        CONTINUE WHEN total <= keep_ended AND one.filled_until > now_at - retention AND one.slot <> next_slot;
        EXECUTE format('LOCK TABLE ended_%s IN ACCESS EXCLUSIVE MODE', one.slot);
        DELETE FROM dedupe AS d USING ended AS e
            WHERE e.slot = one.slot AND e.flags & 8 <> 0 AND d.id = e.id;
        DELETE FROM tries AS t USING ended AS e WHERE e.slot = one.slot AND e.flags & 16 <> 0 AND t.id = e.id;
        INSERT INTO counts (state, slot, items)
            SELECT e.state, one.slot, -count(*) FROM ended AS e WHERE e.slot = one.slot GROUP BY e.state;
        SELECT count(*) INTO removed FROM ended AS e WHERE e.slot = one.slot;
        INSERT INTO counts (state, items) VALUES (101, removed);
        EXECUTE format('TRUNCATE ended_%s', one.slot);
        total := total - removed;
        gone := gone + removed;
    END LOOP;
    IF here.items > 0 AND (here.items * 4 >= keep_ended OR now_at - here.since >= retention / 4) THEN
        UPDATE slots SET filled_until = now_at WHERE slot = here.slot;
        UPDATE filling SET slot = next_slot, since = now_at;
    END IF;
    RETURN gone;
EXCEPTION WHEN lock_not_available THEN
    RETURN 0; -- somebody reads there: next time
END $$;
