-- Gates stand before functions, collections, tenants, downstreams and sources, and may end by themselves.

CREATE TABLE gates_by_name (
    name text PRIMARY KEY,
    gate text NOT NULL,
    until float8 NOT NULL,
    version bigint NOT NULL
);
INSERT INTO gates_by_name
    SELECT replace(json_build_array(function, collection, '', '', '')::text, ', ', ','),
        json_build_object('function', function, 'collection', collection, 'action', action, 'who', who, 'why', why,
            'since', since)::text, 0, version
    FROM gates;
DROP FUNCTION control_gate(text, text, text, text, text, float8);
DROP TABLE gates;

-- A gate of NULL removes what stood there.
CREATE FUNCTION control_gate(its_name text, its_gate text, its_until float8)
RETURNS TABLE (version bigint, changed boolean) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    IF its_gate IS NULL THEN
        DELETE FROM gates_by_name WHERE name = its_name;
        changed := FOUND;
    ELSE
        INSERT INTO gates_by_name VALUES (its_name, its_gate, its_until, version + 1)
            ON CONFLICT (name) DO UPDATE SET gate = its_gate, until = its_until, version = excluded.version;
        changed := true;
    END IF;
    IF changed THEN
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
    END IF;
    RETURN NEXT;
END $$;

-- Gates end by the clock of the server.
CREATE FUNCTION control_end_gates() RETURNS TABLE (version bigint, changed boolean) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    DELETE FROM gates_by_name WHERE until > 0 AND until <= extract(epoch FROM clock_timestamp());
    changed := FOUND;
    IF changed THEN
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
    END IF;
    RETURN NEXT;
END $$;
