-- Who polls the queue: each poller's last word, microseconds of the server's clock. Nobody needs the rows after a
-- crash, but a temporary or unlogged table is not seen by all or not kept by a standby that is promoted.

CREATE TABLE pollers (
    poller text PRIMARY KEY CHECK (length(poller) BETWEEN 1 AND 64),
    seen bigint NOT NULL
) WITH (fillfactor = 50);

-- How many said within `recent` microseconds that they are there; `here`: and so does this one now. A word that is ten
-- times as old is forgotten.
CREATE FUNCTION queue_pollers(at bigint, who text, here boolean, recent bigint) RETURNS int LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    now_at bigint := now_micros(at);
BEGIN
    IF here THEN
        INSERT INTO pollers (poller, seen) VALUES (who, now_at) ON CONFLICT (poller) DO UPDATE SET seen = now_at;
        DELETE FROM pollers WHERE seen < now_at - 10 * recent;
    END IF;
    RETURN (SELECT count(*) FROM pollers WHERE seen BETWEEN now_at - recent AND now_at + recent)::int;
END
$$;
