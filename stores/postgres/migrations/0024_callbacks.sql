-- Callbacks of workloads: what is to be told of the end of one rests beside it, and is made a workload in the transaction
-- that ends it (stores/queue/callback.py). Its task has flag 64.

CREATE TABLE callbacks ( -- of items that have not ended: the workloads that tell of it, around the event
    item bigint PRIMARY KEY,
    whose int NOT NULL, -- the item's kind
    kind int NOT NULL,
    lane int NOT NULL,
    prefix bytea NOT NULL,
    suffix bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- A submission some of whose items tell of their ends. What had been submitted before tells what it told.
CREATE FUNCTION queue_submit_with_callbacks(
    at bigint, numbers bigint[], item_lanes int[], item_kinds int[], dues bigint[], sizes int[], all_flags smallint[],
    payloads bytea[], tagged bigint[], tag_keys text[], tag_headers text[], tag_expires float8[],
    deduped bigint[], dedupe_functions text[], dedupe_keys text[],
    told bigint[], told_kinds int[], told_lanes int[], prefixes bytea[], suffixes bytea[]
) RETURNS TABLE (item bigint, first bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT s.item, s.first
        FROM queue_submit(at, numbers, item_lanes, item_kinds, dues, sizes, all_flags, payloads, tagged, tag_keys,
            tag_headers, tag_expires, deduped, dedupe_functions, dedupe_keys) AS s;
    INSERT INTO callbacks (item, whose, kind, lane, prefix, suffix)
        SELECT t.id, t.kind, g.k, g.l, g.p, g.s
        FROM unnest(told, told_kinds, told_lanes, prefixes, suffixes) AS g (n, k, l, p, s) JOIN tasks AS t ON t.id = g.n;
END $$;

-- Makes the workloads that tell of these ends, where they are to be told. Answers their lanes.
CREATE FUNCTION callbacks_tell(now_at bigint, numbers bigint[], states smallint[], reasons text[]) RETURNS int[]
LANGUAGE plpgsql
SET search_path FROM CURRENT SET plan_cache_mode TO force_generic_plan SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    many int;
    lanes int[];
    kinds int[];
    payloads bytea[];
BEGIN
    WITH gone AS (
        DELETE FROM callbacks AS c WHERE c.item = ANY (numbers) RETURNING c.item, c.whose, c.kind, c.lane, c.prefix, c.suffix
    ), told AS (
        SELECT o.item, o.kind, o.lane, o.prefix || convert_to(json_build_object(
            'id', lpad(to_hex(o.item), 16, '0') || ':done', 'workload', lpad(to_hex(o.item), 16, '0'),
            'function', l.function, 'state', s.state, 'why', CASE WHEN g.s = 10 THEN '' ELSE
                coalesce(nullif(g.r, ''), s.state) END, 'at', now_at / 1e6)::text, 'UTF8') || o.suffix AS payload
        FROM gone AS o JOIN unnest(numbers, states, reasons) AS g (n, s, r) ON g.n = o.item
        CROSS JOIN LATERAL (SELECT (ARRAY['success', 'fatal_failure', 'cancelled', 'dropped', 'expired'])[g.s - 9]) AS s (state)
        JOIN kinds AS k ON k.kind = o.whose JOIN lanes AS l ON l.lane = k.lane
    )
    SELECT count(*), array_agg(t.lane ORDER BY t.item), array_agg(t.kind ORDER BY t.item), array_agg(t.payload ORDER BY t.item)
        INTO many, lanes, kinds, payloads FROM told AS t;
    IF many > 0 THEN
        PERFORM queue_submit(now_at, new_ids(many), lanes, kinds, array_fill(0::bigint, ARRAY[many]),
            ARRAY(SELECT octet_length(p) FROM unnest(payloads) AS p), array_fill(0::smallint, ARRAY[many]), payloads,
            '{}', '{}', '{}', '{}', '{}', '{}', '{}');
    END IF;
    RETURN coalesce(lanes, '{}');
END $$;

-- Replaces what stands in a function of the versions before. Raises where it does not.
CREATE FUNCTION amend(name text, old text, new text) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    was text := pg_get_functiondef(name::regproc);
BEGIN
    IF position(old IN was) = 0 THEN
        RAISE EXCEPTION 'the function % is not that of the version before', name;
    END IF;
    EXECUTE replace(was, old, new);
END $$;

-- Every way to an end tells of it.
DO $do$
BEGIN
    PERFORM amend('bury', $$t.flags & 32 <> 0) THEN
        PERFORM job_end(now_at, numbers, states, reasons);
$$, $$t.flags & 96 <> 0) THEN
        PERFORM job_end(now_at, numbers, states, reasons);
        PERFORM callbacks_tell(now_at, numbers, states, reasons);
$$);
    PERFORM amend('queue_settle', $$count(*) FILTER (WHERE flags & 32 <> 0)] INTO$$,
        $$count(*) FILTER (WHERE flags & 32 <> 0), count(*) FILTER (WHERE flags & 64 <> 0)] INTO$$);
    PERFORM amend('queue_settle', $$                fed := job_succeed(now_at, done, result_ids, results);
            END IF;
$$, $$                fed := job_succeed(now_at, done, result_ids, results);
            END IF;
            IF by_state[6] > 0 THEN
                fed := coalesce(fed, '{}') || callbacks_tell(now_at, done, array_fill(10::smallint, ARRAY[cardinality(done)]),
                    array_fill(''::text, ARRAY[cardinality(done)]));
            END IF;
$$);
    PERFORM amend('queue_settle', $$            PERFORM bury(now_at, array_agg(g.n)$$,
        $$            again := again OR EXISTS (SELECT 1 FROM tasks AS t WHERE t.id = ANY (ends) AND t.flags & 64 <> 0);
            PERFORM bury(now_at, array_agg(g.n)$$);
    PERFORM amend('queue_cancel', $$            PERFORM bury($$,
        $$            again := again OR EXISTS (SELECT 1 FROM callbacks AS c WHERE c.item = wanted);
            PERFORM bury($$);
END $do$;
