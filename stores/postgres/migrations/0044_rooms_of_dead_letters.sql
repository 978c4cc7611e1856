-- Rooms of dead letters: a bounded number of each function and tenant.
-- Beside 33.

-- Number of letters, whichever version of the platform writes or removes them; who does has the lock of dead letters.
CREATE TABLE dead_letter_rooms (
    function text COLLATE "C" NOT NULL,
    tenant text NOT NULL,
    items bigint NOT NULL,
    PRIMARY KEY (function, tenant)
) WITH (fillfactor = 50);
CREATE FUNCTION count_letters() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO dead_letter_rooms AS r (function, tenant, items)
            SELECT a.function, a.tenant, count(*) FROM changed AS a GROUP BY 1, 2 ORDER BY 1, 2
            ON CONFLICT (function, tenant) DO UPDATE SET items = r.items + excluded.items;
    ELSE
        UPDATE dead_letter_rooms AS r SET items = r.items - g.items
            FROM (SELECT a.function, a.tenant, count(*) AS items FROM changed AS a GROUP BY 1, 2) AS g
            WHERE r.function = g.function AND r.tenant = g.tenant;
        DELETE FROM dead_letter_rooms AS r USING changed AS a
            WHERE r.function = a.function AND r.tenant = a.tenant AND r.items <= 0;
    END IF;
    RETURN NULL;
END $$;
LOCK TABLE dead_letters IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO dead_letter_rooms SELECT d.function, d.tenant, count(*) FROM dead_letters AS d GROUP BY 1, 2;
CREATE TRIGGER letters_added AFTER INSERT ON dead_letters REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_letters();
CREATE TRIGGER letters_removed AFTER DELETE ON dead_letters REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_letters();

-- As dead_letters_add, as far as there is room: `most` letters of each function and tenant; one that replaces another
-- always has it. Answers the ids of the others.
CREATE FUNCTION dead_letters_keep(
    most bigint, ids text[], tailers text[], all_functions text[], priorities int[], collections text[], tenants text[],
    outcomes text[], reasons text[], all_attempts int[], all_crashes int[], all_first_seen float8[],
    all_died_at float8[], keys text[], all_headers text[], progresses text[], partitions text[], positions bigint[],
    all_tries text[], payloads bytea[]
) RETURNS text[] LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    refused text[];
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' dead letters', 11));
    SELECT coalesce(array_agg(n.i ORDER BY n.o), '{}') INTO refused FROM (
        SELECT g.i, g.o, g.f, g.t, row_number() OVER (PARTITION BY g.f, g.t ORDER BY g.o) AS place
        FROM unnest(ids, all_functions, tenants) WITH ORDINALITY AS g (i, f, t, o)
        WHERE NOT EXISTS (SELECT 1 FROM dead_letters AS d WHERE d.id = g.i)
    ) AS n LEFT JOIN dead_letter_rooms AS r ON r.function = n.f AND r.tenant = n.t
    WHERE coalesce(r.items, 0) + n.place > most;
    DELETE FROM dead_letters AS d WHERE d.id = ANY (ids);
    INSERT INTO dead_letters (id, tailer, function, priority, collection, tenant, outcome, reason, attempts, crashes,
            first_seen, died_at, key, headers, progress, partition, position, tries, payload)
        SELECT * FROM unnest(ids, tailers, all_functions, priorities, collections, tenants, outcomes, reasons,
            all_attempts, all_crashes, all_first_seen, all_died_at, keys, all_headers, progresses, partitions,
            positions, all_tries, payloads) AS n (i) WHERE n.i <> ALL (refused);
    DELETE FROM dead_letters_gone AS g USING unnest(ids, tailers, partitions, positions) AS a (i, t, p, o)
        WHERE g.tailer = a.t AND g.partition = a.p AND g.position = a.o AND a.i <> ALL (refused);
    RETURN refused;
END $$;

-- For nodes that know of no rooms.
CREATE OR REPLACE FUNCTION dead_letters_add(
    ids text[], tailers text[], all_functions text[], priorities int[], collections text[], tenants text[],
    outcomes text[], reasons text[], all_attempts int[], all_crashes int[], all_first_seen float8[],
    all_died_at float8[], keys text[], all_headers text[], progresses text[], partitions text[], positions bigint[],
    all_tries text[], payloads bytea[]
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
BEGIN
    PERFORM dead_letters_keep(9223372036854775807, ids, tailers, all_functions, priorities, collections, tenants, outcomes,
        reasons, all_attempts, all_crashes, all_first_seen, all_died_at, keys, all_headers, progresses, partitions,
        positions, all_tries, payloads);
END $$;
