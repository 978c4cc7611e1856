-- Headers that somebody's own transaction gave are kept in one form, and none where they are none: an item whose headers
-- do not begin as two brackets is taken for one of a job.

DO $do$
BEGIN
    PERFORM amend('move_rows', $$DELETE FROM outbox WHERE place = ANY (places) AND reason = '' RETURNING *$$,
        $$DELETE FROM outbox WHERE place = ANY (places) AND reason = ''
        RETURNING place, id, function, payload, priority, collection, tenant, key, dedupe_key, due, expires_at,
            CASE WHEN headers = '' OR headers::jsonb = '[]' THEN '' ELSE headers::jsonb::text END AS headers$$);
END $do$;
