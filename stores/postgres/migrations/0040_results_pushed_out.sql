-- Results that were pushed out by newer ones are known by their ids, the last hundred thousand of them, so that who asks
-- for one is told.
-- Beside 33.

CREATE TABLE results_gone (
    id text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL
);
CREATE INDEX results_gone_number ON results_gone (number);

DO $do$
BEGIN
    PERFORM amend('results_put', $$        DELETE FROM results AS r USING oldest AS o WHERE r.id = o.id AND o.before < over;
        EXIT WHEN NOT FOUND;
$$, $$        , pushed AS (
            DELETE FROM results AS r USING oldest AS o WHERE r.id = o.id AND o.before < over RETURNING r.id, r.number
        )
        INSERT INTO results_gone AS g (id, number) SELECT t.id, t.number FROM pushed AS t
            ON CONFLICT (id) DO UPDATE SET number = excluded.number;
        EXIT WHEN NOT FOUND;
        DELETE FROM results_gone AS g WHERE g.number <= (SELECT max(n.number) - 100000 FROM results_gone AS n);
$$);
END $do$;
