-- Rows of somebody's own transaction for one of the platform's own functions are set aside: items of these are made by
-- the queue alone, of an end (stores/queue/admission.py).
-- Beside 33.

DO $do$
BEGIN
    PERFORM amend('move_rows', $$    SELECT array_agg(o.function), array_agg(o.priority)$$,
        $$    UPDATE outbox SET reason = format('function %L begins with ''tailrace.'', as only the platform''s own do: choose another name', left(function, 200))
        WHERE place = ANY (places) AND reason = '' AND starts_with(function, 'tailrace.');
    SELECT array_agg(o.function), array_agg(o.priority)$$);
END $do$;
