-- The key of a tenant's item is that tenant's own (model/tenant_key.py): dedupe keys, keys that order items, and keys of
-- jobs are kept with the tenant before them, between two marks. What people see (entities, job items) stays as it was
-- given. Keys without a tenant are kept as they were.
-- Beside 33.

CREATE TABLE key_scope (one boolean PRIMARY KEY DEFAULT true CHECK (one), shared boolean NOT NULL);
INSERT INTO key_scope (shared) VALUES (false);

-- Whether tenants share their keys, as `shared_keys` of the nodes has it.
CREATE FUNCTION share_keys(wanted boolean) RETURNS void LANGUAGE sql SET search_path FROM CURRENT SET jit TO off AS
    'UPDATE key_scope SET shared = wanted WHERE shared <> wanted';

-- A key as it is kept.
CREATE FUNCTION tenant_key(tenant text, key text) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit TO off AS $$
    SELECT CASE WHEN tenant = '' AND left(key, 1) <> chr(31) OR (SELECT shared FROM key_scope) THEN key
        ELSE chr(31) || tenant || chr(31) || key END
$$;

DO $do$
BEGIN
    PERFORM amend('queue_submit', $$    names text[];
    one record;$$, $$    names text[];
    own_keys text[];
    one record;$$);
    PERFORM amend('queue_submit',
        $$    SELECT array_agg(name) INTO names FROM unnest(tag_keys) AS name WHERE name <> '';
    IF names IS NOT NULL THEN$$,
        $$    IF EXISTS (SELECT 1 FROM unnest(tag_keys) AS name WHERE name <> '') THEN
        SELECT array_agg(CASE WHEN t.k = '' THEN '' ELSE tenant_key(o.tenant, t.k) END ORDER BY t.place) INTO own_keys
            FROM unnest(tagged, tag_keys) WITH ORDINALITY AS t (n, k, place)
            JOIN unnest(numbers, item_kinds) AS s (n, kind) ON s.n = t.n JOIN kinds AS o ON o.kind = s.kind;
        names := array_remove(own_keys, '');$$);
    PERFORM amend('queue_submit', $$            FROM unnest(tagged, tag_keys) WITH ORDINALITY AS t (n, k, place)
            JOIN unnest(numbers, dues)$$, $$            FROM unnest(tagged, own_keys) WITH ORDINALITY AS t (n, k, place)
            JOIN unnest(numbers, dues)$$);
    PERFORM amend('queue_collect', $$array_agg(DISTINCT key)) FROM outbox$$,
        $$array_agg(DISTINCT tenant_key(tenant, key))) FROM outbox$$);
    PERFORM amend('move_rows', $$array_agg(dedupe_key ORDER BY place)$$,
        $$array_agg(tenant_key(tenant, dedupe_key) ORDER BY place)$$);
    PERFORM amend('job_add', $$PERFORM lock_keys(ARRAY(SELECT k FROM unnest(keys) AS k WHERE k <> ''));$$,
        $$PERFORM lock_keys(ARRAY(SELECT tenant_key(o.tenant, k) FROM job_items AS i JOIN jobs AS j ON j.job = i.job
            JOIN jobs AS c ON c.tree = j.tree AND c.name = coalesce(nullif(its_name, ''), j.name)
            JOIN kinds AS o ON o.kind = c.kind, unnest(keys) AS k WHERE i.item = holder AND k <> ''));$$);
END $do$;

-- What is kept already. An item that waited behind another tenant's is due.
WITH theirs AS (
    SELECT d.function, d.key, o.tenant FROM dedupe AS d
        JOIN (SELECT id, kind FROM tasks UNION ALL SELECT id, kind FROM ended) AS t ON t.id = d.id
        JOIN kinds AS o ON o.kind = t.kind
        WHERE (o.tenant <> '' OR left(d.key, 1) = chr(31)) AND d.key NOT LIKE 'submission:%'
)
UPDATE dedupe AS d SET key = tenant_key(h.tenant, d.key) FROM theirs AS h WHERE d.function = h.function AND d.key = h.key;
UPDATE keyed AS d SET key = tenant_key(o.tenant, d.key) FROM tasks AS t JOIN kinds AS o ON o.kind = t.kind
    WHERE t.id = d.id AND (o.tenant <> '' OR left(d.key, 1) = chr(31));
WITH first AS (
    SELECT DISTINCT ON (k.key) k.key, k.place, k.id, k.due FROM keyed AS k
        WHERE NOT EXISTS (SELECT 1 FROM keyed AS h WHERE h.key = k.key AND h.head) ORDER BY k.key, k.place
), freed AS (
    UPDATE keyed AS k SET head = true FROM first AS f WHERE k.key = f.key AND k.place = f.place RETURNING k.id, k.due
)
UPDATE tasks AS t SET next_trigger = f.due, due = f.due FROM freed AS f
    WHERE t.id = f.id AND t.state < 2 AND t.next_trigger = 4611686018427387903;
UPDATE job_trees AS d SET key = tenant_key(o.tenant, d.key) FROM jobs AS j JOIN kinds AS o ON o.kind = j.kind
    WHERE j.tree = d.tree AND j.place = 0 AND d.key <> '' AND (o.tenant <> '' OR left(d.key, 1) = chr(31));
