-- Additions of a run have tokens of its item, whichever life of it runs: an item that is redriven has another workload, and
-- added once more what a former life had added (stores/jobs/rules/redriving.py).

CREATE INDEX job_redrives_items ON job_redrives (item);

-- The first workload of the item that has this one.
CREATE FUNCTION job_first_life(workload bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET jit TO off SET enable_seqscan TO off AS $$
DECLARE
    life bigint := workload;
    earlier bigint;
BEGIN
    LOOP
        SELECT r.former INTO earlier FROM job_redrives AS r WHERE r.item = life;
        IF NOT FOUND THEN
            RETURN life;
        END IF;
        life := earlier;
    END LOOP;
END $$;

DO $do$
BEGIN
    PERFORM amend('job_add', $$        its_tree := own.id;
$$, $$        its_tree := own.id;
        IF left(its_token, 20) = 'in-' || lpad(to_hex(holder), 16, '0') || '-' THEN
            its_token := 'in-' || lpad(to_hex(job_first_life(holder)), 16, '0') || substr(its_token, 20);
        END IF;
$$);
END $do$;
