-- Members of the fleet: processes with tailers, as they tell of themselves, and what one asks of another.

CREATE TABLE members (
    id text PRIMARY KEY,
    place text NOT NULL,
    told text NOT NULL,
    until timestamptz NOT NULL
);

CREATE TABLE member_orders (
    id text PRIMARY KEY,
    member text NOT NULL,
    asked text NOT NULL,
    answer text NOT NULL DEFAULT '',
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A member tells of itself for so many seconds; answers what it was asked and has not answered.
CREATE FUNCTION tell_member(its_id text, its_place text, its_told text, lease double precision)
RETURNS TABLE (id text, member text, asked text, answer text) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    DELETE FROM members AS m WHERE m.until <= now AND m.id <> its_id;
    INSERT INTO members VALUES (its_id, its_place, its_told, now + make_interval(secs => lease))
        ON CONFLICT (id) DO UPDATE SET place = excluded.place, told = excluded.told, until = excluded.until;
    RETURN QUERY SELECT o.id, o.member, o.asked, o.answer FROM member_orders AS o
        WHERE o.member = its_id AND o.answer = '' ORDER BY o.at;
END $$;

CREATE FUNCTION forget_member(its_id text) RETURNS void LANGUAGE sql SET search_path FROM CURRENT SET jit TO off AS
    'DELETE FROM members WHERE id = its_id';

CREATE FUNCTION put_order(its_id text, its_member text, its_asked text, its_answer text, kept double precision)
RETURNS void LANGUAGE sql SET search_path FROM CURRENT SET jit TO off AS $$
    DELETE FROM member_orders WHERE at < clock_timestamp() - make_interval(secs => kept);
    INSERT INTO member_orders (id, member, asked, answer) VALUES (its_id, its_member, its_asked, its_answer)
        ON CONFLICT (id) DO NOTHING;
$$;
