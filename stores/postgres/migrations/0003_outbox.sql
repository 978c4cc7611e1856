-- What somebody's own transaction enqueues. It rests in a table of its own until that transaction has committed: an item
-- of the queue itself would hold locks that nodes need (a key's, a new kind's, a dedupe key's) for as long as a stranger's
-- transaction lasts. A node moves committed rows in one transaction, so that each becomes one item; nobody sees one early.

-- A JSON array of pairs of texts, or nothing.
CREATE FUNCTION is_headers(given text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN given = '' THEN true WHEN jsonb_typeof(given::jsonb) <> 'array' THEN false ELSE (
        SELECT coalesce(bool_and(CASE WHEN jsonb_typeof(pair) <> 'array' THEN false ELSE jsonb_array_length(pair) = 2
            AND jsonb_typeof(pair -> 0) = 'string' AND jsonb_typeof(pair -> 1) = 'string' END), true)
        FROM jsonb_array_elements(given::jsonb) AS pair) END
$$;

CREATE TABLE outbox (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- within a key rows are moved in this order
    id bigint NOT NULL UNIQUE CHECK (id >= 0), -- the item that it will be
    function text NOT NULL CHECK (function ~ '^[A-Za-z0-9_][A-Za-z0-9_./:-]*$' AND length(function) <= 200),
    payload bytea NOT NULL CHECK (length(payload) <= 4194304),
    priority int NOT NULL CHECK (priority BETWEEN 0 AND 3),
    collection text NOT NULL CHECK (collection ~ '^([A-Za-z0-9_][A-Za-z0-9_./:-]*)?$' AND length(collection) <= 200),
    tenant text NOT NULL CHECK (tenant ~ '^([A-Za-z0-9_][A-Za-z0-9_./:-]*)?$' AND length(tenant) <= 200),
    key text NOT NULL CHECK (length(key) <= 200),
    dedupe_key text NOT NULL CHECK (length(dedupe_key) <= 200 AND dedupe_key NOT LIKE 'submission:%'),
    headers text NOT NULL CHECK (length(headers) <= 8192 AND is_headers(headers)),
    due bigint NOT NULL CHECK (due >= 0), -- µs since 1970; 0: at once
    expires_at float8 NOT NULL CHECK (expires_at >= 0 AND expires_at < 253402300800), -- seconds since 1970; 0: never
    reason text NOT NULL DEFAULT '' -- why it was set aside: it is not moved any more
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_moving ON outbox (place) WHERE reason = '';

-- An id of now, as nodes make them (stores/queue/ids.py).
CREATE FUNCTION new_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 22 | (random() * 4194303)::bigint
$$;

-- The one function that plain roles may call: GRANT USAGE ON SCHEMA … TO …, and nothing else. It runs as the schema's
-- owner, so the search path ends with pg_temp: else a caller's temporary table could stand in for one of ours.
DO $$ BEGIN PERFORM set_config('search_path', format('%I, pg_temp', current_schema()), true); END $$;
CREATE FUNCTION enqueue(
    function text, payload bytea DEFAULT '', priority int DEFAULT 2, collection text DEFAULT '', tenant text DEFAULT '',
    key text DEFAULT '', dedupe_key text DEFAULT '', headers text DEFAULT '', delay float8 DEFAULT 0,
    at float8 DEFAULT 0, expires_after float8 DEFAULT -1
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_variable
DECLARE
    now_at float8 := extract(epoch FROM clock_timestamp());
    starts float8;
    number bigint;
BEGIN
    IF NOT (delay BETWEEN 0 AND 2592000 AND at >= 0 AND at <= now_at + 2592000 AND (delay = 0 OR at = 0)) THEN
        RAISE EXCEPTION 'delay is % and at is %: expected one of them, at most 30 days ahead', delay, at
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    starts := CASE WHEN at > 0 THEN at WHEN delay > 0 THEN now_at + delay ELSE 0 END;
    LOOP
        number := new_id();
        INSERT INTO outbox (
            id, function, payload, priority, collection, tenant, key, dedupe_key, headers, due, expires_at
        ) VALUES (
            number, function, payload, priority, collection, tenant, key, dedupe_key, headers, ceil(starts * 1e6),
            CASE WHEN expires_after >= 0 THEN greatest(starts, now_at) + expires_after ELSE 0 END
        ) ON CONFLICT (id) DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
    RETURN number;
END $$;
DO $$ BEGIN PERFORM set_config('search_path', format('%I', current_schema()), true); END $$;

-- Moves these rows; all of them or, when it raises, none. Those that are too large are set aside.
CREATE FUNCTION move_rows(moment bigint, places bigint[], max_payload int) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
#variable_conflict use_column
DECLARE
    f text[];
    p int[];
    c text[];
    t text[];
    a record;
BEGIN
    UPDATE outbox SET reason = format('its payload has %s bytes, at most %s are taken', length(payload), max_payload)
        WHERE place = ANY (places) AND reason = '' AND length(payload) > max_payload;
    SELECT array_agg(o.function), array_agg(o.priority), array_agg(o.collection), array_agg(o.tenant) INTO f, p, c, t
        FROM (SELECT DISTINCT function, priority, collection, tenant FROM outbox
              WHERE place = ANY (places) AND reason = '') AS o
        WHERE NOT EXISTS (SELECT 1 FROM lanes AS l JOIN kinds AS k ON k.lane = l.lane
                          WHERE l.function = o.function AND l.priority = o.priority AND l.collection = o.collection
                            AND k.tenant = o.tenant);
    IF f IS NOT NULL THEN
        PERFORM queue_kinds(f, p, c, t);
    END IF;
    WITH gone AS (
        DELETE FROM outbox WHERE place = ANY (places) AND reason = '' RETURNING *
    ), known AS (
        SELECT g.*, k.kind, k.lane, (g.key <> '' OR g.headers <> '' OR g.expires_at > 0) AS tagged
        FROM gone AS g JOIN lanes AS l ON l.function = g.function AND l.priority = g.priority
            AND l.collection = g.collection
        JOIN kinds AS k ON k.lane = l.lane AND k.tenant = g.tenant
    )
    SELECT array_agg(id ORDER BY place) AS ids, array_agg(lane ORDER BY place) AS lanes,
        array_agg(kind ORDER BY place) AS kinds, array_agg(due ORDER BY place) AS dues,
        array_agg(length(payload) ORDER BY place) AS sizes,
        array_agg((tagged::int | CASE WHEN key <> '' THEN 4 ELSE 0 END | CASE WHEN dedupe_key <> '' THEN 8 ELSE 0 END
            )::smallint ORDER BY place) AS flags,
        array_agg(payload ORDER BY place) AS payloads,
        coalesce(array_agg(id ORDER BY place) FILTER (WHERE tagged), '{}') AS tagged,
        coalesce(array_agg(key ORDER BY place) FILTER (WHERE tagged), '{}') AS tag_keys,
        coalesce(array_agg(headers ORDER BY place) FILTER (WHERE tagged), '{}') AS tag_headers,
        coalesce(array_agg(expires_at ORDER BY place) FILTER (WHERE tagged), '{}') AS tag_expires,
        coalesce(array_agg(id ORDER BY place) FILTER (WHERE dedupe_key <> ''), '{}') AS deduped,
        coalesce(array_agg(function ORDER BY place) FILTER (WHERE dedupe_key <> ''), '{}') AS dedupe_functions,
        coalesce(array_agg(dedupe_key ORDER BY place) FILTER (WHERE dedupe_key <> ''), '{}') AS dedupe_keys
        INTO a FROM known;
    IF a.ids IS NOT NULL THEN
        PERFORM queue_submit(moment, a.ids, a.lanes, a.kinds, a.dues, a.sizes, a.flags, a.payloads, a.tagged,
            a.tag_keys, a.tag_headers, a.tag_expires, a.deduped, a.dedupe_functions, a.dedupe_keys);
    END IF;
END $$;

-- Moves committed rows, the oldest first, at most so many and about 8 MB, as long as the queue has room for live items.
-- One caller at a time, so that rows of one key keep their order. A row that cannot be moved is set aside with the reason
-- and holds up no other.
CREATE FUNCTION queue_collect(at bigint, most int, max_payload int, max_waiting bigint)
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
