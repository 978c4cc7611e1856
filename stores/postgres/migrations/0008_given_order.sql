-- Items are stored in the order in which they are given. It was that of their ids, which is the same for those that a node
-- submits; but an outbox gives each row an id of its own when it is written, and two of one millisecond may fall: the
-- second of a key ran before the first, and the second of a dedupe key was the one that stayed.

CREATE OR REPLACE FUNCTION queue_submit(
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
            SELECT f, k, n FROM unnest(dedupe_functions, dedupe_keys, deduped) WITH ORDINALITY AS d (f, k, n, place)
            ORDER BY f, k, place
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
            FROM unnest(tagged, tag_keys) WITH ORDINALITY AS t (n, k, place)
            JOIN unnest(numbers, dues) AS s (n, d) ON s.n = t.n
            WHERE t.k <> '' AND NOT t.n = ANY (again) ORDER BY t.place
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
