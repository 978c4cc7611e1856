-- Gates end by the word of a gateway that saw them for their whole time: a clock that is ahead ends none.
-- Beside 33.

-- Removes the gates of these names, where they are still of these versions.
CREATE FUNCTION control_end_gates(names text[], versions bigint[]) RETURNS TABLE (version bigint, changed boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    DELETE FROM gates_by_name AS g USING unnest(names, versions) AS e (name, version)
        WHERE g.name = e.name AND g.version = e.version;
    changed := FOUND;
    IF changed THEN
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
    END IF;
    RETURN NEXT;
END $$;
