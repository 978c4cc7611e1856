-- Bytes that trees of jobs keep until they are forgotten: results, and what items that failed were given. They are the
-- state 102 of the counts, which sweeps add up; nothing is added to trees while they are too many.

CREATE FUNCTION job_kept() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    bytes bigint;
BEGIN
    IF TG_TABLE_NAME = 'job_results' THEN
        SELECT sum(octet_length(result)) INTO bytes FROM changed;
    ELSE
        SELECT sum(octet_length(payload)) INTO bytes FROM changed;
    END IF;
    IF bytes > 0 THEN
        INSERT INTO counts (state, items) VALUES (102, CASE WHEN TG_OP = 'INSERT' THEN bytes ELSE -bytes END);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER kept AFTER INSERT ON job_results REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION job_kept();
CREATE TRIGGER forgotten AFTER DELETE ON job_results REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION job_kept();
CREATE TRIGGER kept AFTER INSERT ON job_payloads REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION job_kept();
CREATE TRIGGER forgotten AFTER DELETE ON job_payloads REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION job_kept();
INSERT INTO counts (state, items)
    SELECT 102, s.bytes FROM (
        SELECT coalesce((SELECT sum(octet_length(result)) FROM job_results), 0)
            + coalesce((SELECT sum(octet_length(payload)) FROM job_payloads), 0) AS bytes) AS s WHERE s.bytes > 0;

-- Additions are refused as `full` where their caller says that too much is kept; one that was heard is answered as before.
DO $do$
DECLARE
    was text;
BEGIN
    PERFORM amend('job_add', $$    INSERT INTO job_calls (job, token, items) VALUES (here.job, its_token, many);$$,
        $$    IF is_full AND many > 0 THEN
        outcome := 'full';
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO job_calls (job, token, items) VALUES (here.job, its_token, many);$$);
    was := pg_get_functiondef('job_add'::regproc);
    DROP FUNCTION job_add;
    EXECUTE replace(was, 'its_fence bigint)', 'its_fence bigint, is_full boolean DEFAULT false)');
END $do$;
