-- What gathers is tried again with the list that it was given where nothing before it failed, and is made anew else: of
-- nothing that was tried again before it, nothing is made (stores/jobs/rules/retrying.py).
-- Beside 33.

DO $do$
BEGIN
    PERFORM amend('job_retry', $$            WHERE o.tree = former.tree AND NOT o.gather ORDER BY o.place
$$, $$            WHERE o.tree = former.tree AND NOT (o.gather AND o.job IN (
                WITH RECURSIVE behind_it (job) AS (
                    SELECT p.job FROM jobs AS f JOIN job_parents AS p ON p.parent = f.job
                        WHERE f.tree = former.tree AND f.failed > 0
                    UNION SELECT p.job FROM behind_it AS u JOIN job_parents AS p ON p.parent = u.job)
                SELECT u.job FROM behind_it AS u)) ORDER BY o.place
$$);
    PERFORM amend('job_gather', $$    SELECT greatest(coalesce(sum(octet_length(r.result) + 1), 0), 1) + 1 INTO bytes FROM job_parents AS p
$$, $$    IF EXISTS (SELECT 1 FROM jobs AS j JOIN job_trees AS t ON t.tree = j.tree
            WHERE j.job = its_job AND t.definition LIKE 'failed items of %')
        AND NOT EXISTS (SELECT 1 FROM job_parents AS p JOIN job_items AS i ON i.job = p.parent AND i.state > 0
            WHERE p.job = its_job) THEN
        UPDATE jobs SET sealed = true WHERE job = its_job;
        RETURN -1;
    END IF;
    SELECT greatest(coalesce(sum(octet_length(r.result) + 1), 0), 1) + 1 INTO bytes FROM job_parents AS p
$$);
END $do$;
