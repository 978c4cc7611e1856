-- Nothing here is worth compiling. Where statistics are old a server takes a look at a few rows for one at a hundred
-- thousand, and compiles it first: with `jit = on` as it comes, a sweep of a few milliseconds took 100 to 200 of a
-- processor, every five seconds, and whoever submitted meanwhile waited for a part of it.

DO $$
DECLARE
    called text;
BEGIN
    FOR called IN
        SELECT p.oid::regprocedure::text FROM pg_proc AS p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.proconfig IS NOT NULL
            AND p.prorettype <> 'trigger'::regtype
            AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) AS setting WHERE setting LIKE 'jit=%')
    LOOP
        EXECUTE 'ALTER FUNCTION ' || called || ' SET jit TO off';
    END LOOP;
END $$;
