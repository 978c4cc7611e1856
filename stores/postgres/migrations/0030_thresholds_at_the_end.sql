-- A tree bears as many failures as its threshold says, whoever counts them: two that each counted one of the last two did
-- not see each other's, and the tree was complete. Of jobs that are complete all is counted, so the last one finds it.

DO $do$
BEGIN
    PERFORM amend('job_decide', $$    number bigint;
$$, $$    number bigint;
    lost record;
$$);
    PERFORM amend('job_decide', $$            UPDATE jobs SET complete_at = now_micros(at), due = false
$$, $$            SELECT sum(j.failed) AS failed, t.most_failed INTO lost FROM job_trees AS t JOIN jobs AS j ON j.tree = t.tree
                WHERE t.tree = number AND t.policy = 'threshold' AND t.ending = '' AND t.complete_at IS NULL
                GROUP BY t.tree HAVING sum(j.failed) > t.most_failed;
            IF FOUND THEN
                PERFORM job_end_tree(number, 'failed', format('%s of its items failed, and its policy is threshold of %s',
                    lost.failed, lost.most_failed));
                done := done + 1;
                CONTINUE;
            END IF;
            UPDATE jobs SET complete_at = now_micros(at), due = false
$$);
END $do$;
