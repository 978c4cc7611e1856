-- Tokens of people and programs, by name, with their hashes; and the fleet that the stores are of.

CREATE TABLE tokens (
    name text PRIMARY KEY,
    token text NOT NULL
);

-- A token of NULL is revoked.
CREATE FUNCTION control_token(its_name text, its_token text)
RETURNS TABLE (version bigint, changed boolean) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    IF its_token IS NULL THEN
        DELETE FROM tokens WHERE name = its_name;
    ELSE
        INSERT INTO tokens VALUES (its_name, its_token) ON CONFLICT (name) DO NOTHING;
    END IF;
    changed := FOUND;
    IF changed THEN
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
    END IF;
    RETURN NEXT;
END $$;

CREATE TABLE fleet (
    one integer PRIMARY KEY CHECK (one = 1),
    name text NOT NULL
);

-- The first one that says so stays.
CREATE FUNCTION control_belong(its_name text) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
BEGIN
    INSERT INTO fleet VALUES (1, its_name) ON CONFLICT (one) DO NOTHING;
    RETURN (SELECT name FROM fleet);
END $$;
