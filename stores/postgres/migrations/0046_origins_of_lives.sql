-- A redriven item of a job is marked with a 0 before how often it may fail: whoever claims it looks for its first workload,
-- which its function is told as its origin. A node of the version before reads the same number of failures.
-- Beside 33.

DO $do$
BEGIN
    PERFORM amend('job_redrive', $$marks := marks || here.mark;$$, $$marks := marks || ('[0' || substr(here.mark, 2));$$);
END $do$;
