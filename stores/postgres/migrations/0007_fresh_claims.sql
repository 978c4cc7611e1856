-- A submission that takes a waiting lease along (stores/queue/hand_over.py) writes its items as they are in the end: out.
-- Stored as waiting first and claimed then, each is a row of `tasks` twice and of the index of what waits once, and all
-- of it is looked up again. That remains for what is not so plain: items of several lanes, or with more than a
-- payload, some that had been submitted before, or something that waits before them.

CREATE FUNCTION queue_submit_and_claim(
    at bigint, numbers bigint[], item_lanes int[], item_kinds int[], dues bigint[], sizes int[], all_flags smallint[],
    payloads bytea[], tagged bigint[], tag_keys text[], tag_headers text[], tag_expires float8[],
    deduped bigint[], dedupe_functions text[], dedupe_keys text[],
    visits int[], limits int[], bounds bigint[], cells int[], wanted int[], shut int[], total int, room bigint,
    lease bigint, timeline text
) RETURNS TABLE (
    item bigint, first bigint, id bigint, kind int, attempts int, crashes int, payload bytea, key text, headers text,
    expires_at float8, progress text, due bigint, fence bigint, number bigint, moment bigint
) LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off
SET enable_bitmapscan TO off SET enable_mergejoin TO off AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(at);
    items int := cardinality(numbers);
    known int;
    plain boolean := cardinality(visits) = 1 AND item_lanes <@ visits AND tagged = '{}' AND shut = '{}'
        AND items <= least(total, limits[1], wanted[cells[1]]) AND timeline = this_timeline()
        AND (SELECT max(d) = 0 FROM unnest(dues) AS d) AND (SELECT sum(s) <= room FROM unnest(sizes) AS s);
    given bigint;
    claim_number bigint;
BEGIN
    IF plain THEN
        plain := NOT EXISTS (SELECT 1 FROM tasks AS t
            WHERE t.lane = visits[1] AND t.next_trigger >= bounds[1] AND t.next_trigger <= now_at);
    END IF;
    IF plain AND deduped <> '{}' THEN
        INSERT INTO dedupe (function, key, id)
            SELECT f, k, n FROM unnest(dedupe_functions, dedupe_keys, deduped) AS d (f, k, n) ORDER BY f, k, n
            ON CONFLICT (function, key) DO NOTHING;
        GET DIAGNOSTICS known = ROW_COUNT;
        plain := known = cardinality(deduped);
    END IF;
    IF NOT plain THEN
        RETURN QUERY SELECT s.item, s.first, NULL::bigint, NULL::int, NULL::int, NULL::int, NULL::bytea, NULL, NULL,
            NULL::float8, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint
            FROM queue_submit(at, numbers, item_lanes, item_kinds, dues, sizes, all_flags, payloads, tagged, tag_keys,
                tag_headers, tag_expires, deduped, dedupe_functions, dedupe_keys) AS s;
        RETURN QUERY SELECT NULL::bigint, NULL::bigint, c.*
            FROM queue_claim(at, visits, limits, bounds, cells, wanted, shut, total, room, lease, timeline) AS c;
        RETURN;
    END IF;
    -- As in queue_claim: two claims in one microsecond may bear one number.
    given := nextval('fences');
    IF given < now_at THEN
        given := now_at;
        PERFORM setval('fences', given);
    END IF;
    claim_number := nextval('claim_numbers');
    INSERT INTO claims (number, until, lease, ids) VALUES (claim_number, now_at + lease, lease, numbers);
    INSERT INTO tasks (id, lane, kind, size, flags, due, state, fence, claim)
        SELECT n, l, k, s, f, now_at, 2, given, claim_number
        FROM unnest(numbers, item_lanes, item_kinds, sizes, all_flags) AS i (n, l, k, s, f);
    INSERT INTO entities (id, payload) SELECT n, p FROM unnest(numbers, payloads) AS i (n, p);
    INSERT INTO counts (state, items) VALUES (2, items), (100, items);
    RETURN QUERY SELECT NULL::bigint, NULL::bigint, i.n, i.k, 0, 0, i.p, '', '', 0::float8, '', now_at, given,
        claim_number, now_at FROM unnest(numbers, item_kinds, payloads) AS i (n, k, p);
    RETURN QUERY SELECT -1::bigint, now_at, NULL::bigint, NULL::int, NULL::int, NULL::int, NULL::bytea, NULL, NULL,
        NULL::float8, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint;
END $$;
