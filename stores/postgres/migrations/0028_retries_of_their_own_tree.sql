-- Another try of a tree goes on in the tree that was begun for it, and in none that only has the id which it was given.

DO $do$
BEGIN
    PERFORM amend('job_retry', $$SELECT t.tree INTO number FROM job_trees AS t WHERE t.id = new_id;$$,
        $$SELECT t.tree INTO number FROM job_trees AS t
            WHERE t.id = new_id AND t.definition = 'failed items of ' || its_id;
        IF NOT FOUND THEN
            outcome := 'other';
            RETURN NEXT;
            RETURN;
        END IF;$$);
END $do$;
