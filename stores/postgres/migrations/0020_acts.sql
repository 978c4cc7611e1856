-- Acts of operators, as they begin and as they end. Neither is changed afterwards.

CREATE TABLE acts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at double precision NOT NULL,
    act text NOT NULL
);

CREATE TABLE act_ends (
    number bigint PRIMARY KEY,
    outcome text NOT NULL
);

-- The oldest ones, as long as they are too old or too many. Answers how many those were.
CREATE FUNCTION forget_acts(since double precision, most bigint, at_once integer) RETURNS integer LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    newest bigint := (SELECT max(number) FROM acts);
    first_kept bigint;
    gone integer;
BEGIN
    SELECT number INTO first_kept FROM (SELECT number, at FROM acts ORDER BY number LIMIT at_once) AS oldest
    WHERE at >= since AND number > newest - most ORDER BY number LIMIT 1;
    IF first_kept IS NULL THEN
        SELECT max(number) + 1 INTO first_kept FROM (SELECT number FROM acts ORDER BY number LIMIT at_once) AS oldest;
    END IF;
    DELETE FROM acts WHERE number < first_kept;
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM act_ends WHERE number < first_kept;
    RETURN gone;
END $$;
