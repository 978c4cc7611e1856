-- Pauses of jobs note the right with which they were made: who resumes one needs a right as wide.
-- Beside 33.

ALTER TABLE job_trees ADD COLUMN paused_with text NOT NULL DEFAULT '';

-- Pauses a tree with this right, or resumes it where that is empty. `seen`: the right that its caller read; NULL: any.
CREATE FUNCTION job_hold(its_id text, its_right text, seen text) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit TO off AS $$
DECLARE
    root record;
BEGIN
    SELECT tree, ending, paused, paused_with, complete_at INTO root FROM job_trees WHERE id = its_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    IF root.ending <> '' OR root.complete_at IS NOT NULL THEN
        RETURN 'over';
    END IF;
    IF seen <> (CASE WHEN root.paused THEN root.paused_with ELSE '' END) THEN
        RETURN 'moved';
    END IF;
    UPDATE job_trees SET paused = its_right <> '', paused_with = its_right WHERE tree = root.tree;
    IF root.paused AND its_right = '' THEN
        UPDATE jobs SET looked = 0 WHERE tree = root.tree AND complete_at IS NULL;
        PERFORM job_mark(ARRAY(SELECT job FROM jobs WHERE tree = root.tree AND complete_at IS NULL));
    END IF;
    RETURN 'done';
END $$;

-- A node of the version before notes none.
DO $do$
BEGIN
    PERFORM amend('job_change', $$UPDATE job_trees SET paused = true WHERE$$,
        $$UPDATE job_trees SET paused = true, paused_with = '' WHERE$$);
END $do$;
