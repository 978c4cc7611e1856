-- A renewal touches what is still out under its fence, and nothing else: an item whose return was being written while its
-- claim was renewed in part was given to a claim again as it waited, which the table refuses, and the tailer with it.

DO $do$
BEGIN
    PERFORM amend('queue_renew', $$WHERE t.id = ANY (numbers) AND t.claim = one.number;$$,
        $$WHERE t.id = ANY (numbers) AND t.claim = one.number AND t.fence = renewed_fence;$$);
    PERFORM amend('queue_renew', $$UPDATE tasks AS t SET claim = part WHERE t.id = ANY (held);$$,
        $$UPDATE tasks AS t SET claim = part
                WHERE t.id = ANY (held) AND t.claim = one.number AND t.fence = renewed_fence AND t.state >= 2;$$);
END $do$;
