-- The state in PostgreSQL: owners of streams, checkpoints, the ledger of failed items, and what operators and clients
-- ask for. Verbs are functions, so that each is one statement, one transaction and one trip, also through a pooler that
-- gives every transaction another connection. What no writer may take back, whoever it is, is refused by triggers.
--
-- Texts that are ordered or compared are in the order of their bytes. Fates, places and causes are the numbers of
-- model. Locks are taken in one order everywhere: home, heads, rows.

CREATE FUNCTION refuse_going_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: what was written there is not taken back (%)', TG_TABLE_NAME, to_jsonb(OLD)
        USING ERRCODE = 'check_violation';
END $$;

-- Which server these tables are on, and what came with it. `quiet_until`, µs: no stream is taken before.
CREATE TABLE state_home (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    home text NOT NULL,
    timeline text NOT NULL,
    wait bigint NOT NULL, -- the lease of a source, µs
    quiet_until bigint NOT NULL DEFAULT 0
);

-- Logs that are files of a node, and whose they are.
CREATE TABLE bound (what text PRIMARY KEY, node text NOT NULL);

CREATE FUNCTION bind_log(log text, its_node text) RETURNS text LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO bound (what, node) VALUES (log, its_node) ON CONFLICT DO NOTHING;
    SELECT node FROM bound WHERE what = log;
$$;

-- Owners.

CREATE TABLE ownership (
    source text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    epoch bigint NOT NULL CHECK (epoch > 0 AND epoch < 2147483648),
    holder text NOT NULL,
    lease float8 NOT NULL CHECK (lease > 0 AND lease < 'infinity'),
    schedulers text[] NOT NULL,
    PRIMARY KEY (source, partition)
) WITH (fillfactor = 50);
-- Every write raises the version, every taking the epoch; an epoch that was given back is not resumed.
CREATE TRIGGER never_back BEFORE UPDATE ON ownership FOR EACH ROW WHEN (
    NEW.source <> OLD.source OR NEW.partition <> OLD.partition OR NEW.version <= OLD.version OR NEW.epoch < OLD.epoch
    OR (NEW.epoch = OLD.epoch AND NEW.holder <> OLD.holder AND NEW.holder <> '')
) EXECUTE FUNCTION refuse_going_back();
CREATE TRIGGER never_gone BEFORE DELETE ON ownership FOR EACH ROW EXECUTE FUNCTION refuse_going_back();

-- Checkpoints.

CREATE TABLE checkpoint_sources (source text COLLATE "C" PRIMARY KEY, epoch bigint NOT NULL) WITH (fillfactor = 50);
CREATE TRIGGER never_back BEFORE UPDATE ON checkpoint_sources FOR EACH ROW
    WHEN (NEW.epoch < OLD.epoch OR NEW.source <> OLD.source) EXECUTE FUNCTION refuse_going_back();
CREATE TRIGGER never_gone BEFORE DELETE ON checkpoint_sources FOR EACH ROW EXECUTE FUNCTION refuse_going_back();

CREATE TABLE checkpoint_marks (
    source text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL, -- of the owner who wrote it
    position bigint NOT NULL CHECK (position >= 0),
    handed_out bigint NOT NULL CHECK (handed_out >= 0),
    ahead bytea NOT NULL,
    book bytea NOT NULL,
    PRIMARY KEY (source, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE TRIGGER never_back BEFORE UPDATE ON checkpoint_marks FOR EACH ROW WHEN (
    NEW.source <> OLD.source OR NEW.partition <> OLD.partition OR NEW.position < OLD.position
    OR NEW.handed_out < OLD.handed_out
) EXECUTE FUNCTION refuse_going_back();
CREATE FUNCTION refuse_stale_marks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written AS w LEFT JOIN checkpoint_sources AS s ON s.source = w.source
               WHERE s.epoch IS DISTINCT FROM w.epoch) THEN
        RAISE EXCEPTION 'a checkpoint of an epoch that is over' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER only_the_owner_adds AFTER INSERT ON checkpoint_marks REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_stale_marks();
CREATE TRIGGER only_the_owner_moves AFTER UPDATE ON checkpoint_marks REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_stale_marks();

-- What did not succeed below a mark. `plain`: all of it ended so; else `counts` says how, as JSON.
CREATE TABLE checkpoint_endings (
    source text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    plain smallint,
    counts text,
    PRIMARY KEY (source, partition, first),
    CHECK (last >= first),
    CHECK ((plain IS NULL) = (counts IS NOT NULL))
);

-- The ledger.

CREATE TABLE ledger_heads (
    source text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    passed bigint NOT NULL,
    PRIMARY KEY (source, partition)
) WITH (fillfactor = 50);
CREATE TRIGGER never_back BEFORE UPDATE ON ledger_heads FOR EACH ROW WHEN (
    NEW.source <> OLD.source OR NEW.partition <> OLD.partition OR NEW.epoch < OLD.epoch OR NEW.passed < OLD.passed
) EXECUTE FUNCTION refuse_going_back();
CREATE TRIGGER never_gone BEFORE DELETE ON ledger_heads FOR EACH ROW EXECUTE FUNCTION refuse_going_back();

-- `entry` is the whole row, in one form, which every write compares; what the schema itself watches stands beside it.
CREATE TABLE ledger (
    source text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    position bigint NOT NULL CHECK (position >= 0),
    place smallint NOT NULL CHECK (place BETWEEN 1 AND 6),
    n bigint NOT NULL CHECK (n >= 0),
    fence bigint NOT NULL CHECK (fence >= 0),
    owner bigint, -- the epoch of the owner who wrote it last; a due copy has none
    entry text COLLATE "C" NOT NULL,
    PRIMARY KEY (source, partition, position)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ledger_places ON ledger (source, place, partition);
-- The table of stores/ledger/lifecycle.py, for every writer: what is over stays over, no fence and no n goes back, a run
-- has a higher fence, what left its source never comes back to it, and a copy has a parking before it.
CREATE TRIGGER only_legal_moves BEFORE UPDATE ON ledger FOR EACH ROW WHEN (
    NEW.source <> OLD.source OR NEW.partition <> OLD.partition OR NEW.position <> OLD.position
    OR OLD.place >= 5 OR NEW.fence < OLD.fence OR NEW.n < OLD.n OR (NEW.place = 4 AND NEW.fence = OLD.fence)
    OR (NEW.place = 1 AND OLD.place <> 1) OR (NEW.place IN (3, 4) AND OLD.place = 1)
) EXECUTE FUNCTION refuse_going_back();
CREATE FUNCTION refuse_stale_rows() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written AS w
               LEFT JOIN ledger_heads AS h ON h.source = w.source AND h.partition = w.partition
               WHERE w.owner IS NOT NULL AND h.epoch IS DISTINCT FROM w.owner) THEN
        RAISE EXCEPTION 'a row of an epoch that is over' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION refuse_late_rows() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written AS w
               LEFT JOIN ledger_heads AS h ON h.source = w.source AND h.partition = w.partition
               WHERE w.owner IS NULL OR h.epoch IS DISTINCT FROM w.owner OR w.position < h.passed
                 OR w.place IN (3, 4, 5)) THEN
        RAISE EXCEPTION 'a row of an epoch that is over, below the checkpoint, or from nowhere'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER only_the_owner_adds AFTER INSERT ON ledger REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_late_rows();
CREATE TRIGGER only_the_owner_moves AFTER UPDATE ON ledger REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_stale_rows();

CREATE TABLE ledger_ended ( -- of what was parked
    source text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    place smallint NOT NULL CHECK (place IN (5, 6)),
    items bigint NOT NULL CHECK (items >= 0),
    PRIMARY KEY (source, partition, place)
) WITH (fillfactor = 50);

-- After a failover or a restore: no owner from before goes on, above all epochs that are known and, as they follow the
-- clock, above all that were given; and none is given for the lease of a source. Answers whether there was a need.
CREATE FUNCTION supersede(went_back boolean) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    here text := this_home_of_the_state();
    now_at bigint := now_micros(NULL);
    highest bigint;
BEGIN
    PERFORM 1 FROM state_home AS h WHERE h.home <> here OR went_back FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT greatest(
        (SELECT max(epoch) FROM ownership),
        (SELECT max(c.epoch) FROM checkpoint_sources AS c JOIN ownership AS o ON c.source = o.source
            || CASE WHEN o.partition = '' THEN '' ELSE '/' || o.partition END),
        (SELECT max(l.epoch) FROM ledger_heads AS l WHERE l.source IN (SELECT source FROM ownership))
    ) INTO highest;
    highest := greatest(highest + 1, now_at / 1000000 - 1577836800);
    UPDATE checkpoint_sources AS c SET epoch = highest FROM ownership AS o WHERE c.source = o.source
        || CASE WHEN o.partition = '' THEN '' ELSE '/' || o.partition END;
    UPDATE ledger_heads AS l SET epoch = highest WHERE l.source IN (SELECT source FROM ownership);
    -- A copy that comes due writes its row under no epoch: so the rows of what waits bear this one, below which nobody
    -- starts them (stores/state/sqlite_restored.py), and the owner of what is due that comes next is above it.
    UPDATE ledger SET owner = NULL, entry = regexp_replace(entry, '^(\[([^,]+, ){8})[^,]+', '\1' || highest)
        WHERE place IN (2, 3);
    IF FOUND THEN
        INSERT INTO ownership VALUES ('due', '', greatest(now_at - 1, 1), greatest(highest - 1, 1), '', 1, '{}')
            ON CONFLICT DO NOTHING;
    END IF;
    UPDATE ownership SET epoch = highest, version = greatest(version + 1, now_at);
    UPDATE control_version SET version = greatest(version + 1, now_at / 1000000 - 1577836800);
    UPDATE state_home AS h SET home = here, timeline = this_timeline(), quiet_until = now_at + h.wait;
    RETURN true;
END $$;

CREATE FUNCTION this_home_of_the_state() RETURNS text LANGUAGE sql SET search_path FROM CURRENT AS $$
    SELECT (SELECT system_identifier::text FROM pg_control_system()) || ' ' || this_timeline() || ' '
        || 'ownership'::regclass::oid
$$;

-- A new connection looks where it leads. `known`: how far the log had come when this process looked last; -1: never.
CREATE FUNCTION arrive(its_wait bigint, known bigint) RETURNS TABLE (moved boolean, written bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    here text := this_home_of_the_state();
BEGIN
    moved := false;
    written := (pg_current_wal_lsn() - '0/0')::bigint;
    IF NOT EXISTS (SELECT 1 FROM state_home AS h WHERE h.home = here AND h.wait = its_wait) OR written < known THEN
        INSERT INTO state_home (home, timeline, wait) VALUES (here, this_timeline(), its_wait) ON CONFLICT DO NOTHING;
        UPDATE state_home AS h SET wait = its_wait WHERE h.wait <> its_wait;
        moved := supersede(written < known);
    END IF;
    RETURN NEXT;
END $$;

-- Before each write of an owner: a pooler keeps its connections while the server behind them is replaced.
CREATE FUNCTION look_where_we_are() RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM state_home WHERE timeline <> this_timeline()) THEN
        PERFORM supersede(false);
    END IF;
END $$;

-- For operators, before the start, when files were put back under a server that nobody was connected to.
CREATE FUNCTION restored() RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
    UPDATE home SET known = '';
    UPDATE state_home SET home = '';
$$;

-- No row: it changed. Else how long nothing is taken yet (µs), or 0 and what was taken.
CREATE FUNCTION ownership_take(src text, part text, taker text, its_lease float8, seen bigint, listed text[])
RETURNS TABLE (quiet bigint, version bigint, epoch bigint) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    now_at bigint := now_micros(NULL);
    here record;
    next_epoch bigint;
    next_version bigint;
BEGIN
    PERFORM look_where_we_are();
    SELECT least(h.quiet_until - now_at, h.wait) INTO quiet FROM state_home AS h;
    IF quiet > 0 THEN
        RETURN NEXT;
        RETURN;
    END IF;
    quiet := 0;
    SELECT o.version, o.epoch INTO here FROM ownership AS o WHERE o.source = src AND o.partition = part FOR UPDATE;
    IF coalesce(here.version, 0) <> seen THEN
        RETURN;
    END IF;
    next_epoch := greatest(coalesce(here.epoch, 0) + 1, now_at / 1000000 - 1577836800);
    next_version := greatest(seen + 1, now_at);
    IF here.version IS NULL THEN
        INSERT INTO ownership (source, partition, version, epoch, holder, lease, schedulers)
            VALUES (src, part, next_version, next_epoch, taker, its_lease, listed) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN; -- somebody took it between
        END IF;
    ELSE
        UPDATE ownership AS o SET version = next_version, epoch = next_epoch, holder = taker, lease = its_lease,
            schedulers = listed WHERE o.source = src AND o.partition = part;
    END IF;
    version := next_version;
    epoch := next_epoch;
    RETURN NEXT;
END $$;

-- The row as it is then; `renewed` says whether that is by this call. No row: nobody ever took it.
CREATE FUNCTION ownership_renew(src text, part text, its_epoch bigint, listed text[])
RETURNS TABLE (renewed boolean, version bigint, epoch bigint, holder text, lease float8) LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    PERFORM look_where_we_are();
    RETURN QUERY UPDATE ownership AS o SET version = greatest(o.version + 1, now_micros(NULL)), schedulers = listed
        WHERE o.source = src AND o.partition = part AND o.epoch = its_epoch AND o.holder <> ''
        RETURNING true, o.version, o.epoch, o.holder, o.lease;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, o.version, o.epoch, o.holder, o.lease FROM ownership AS o
            WHERE o.source = src AND o.partition = part;
    END IF;
END $$;

-- The epoch that the row has; NULL: there is none.
CREATE FUNCTION ownership_release(src text, part text, its_epoch bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM look_where_we_are();
    UPDATE ownership AS o SET version = greatest(o.version + 1, now_micros(NULL)), holder = '', schedulers = '{}'
        WHERE o.source = src AND o.partition = part AND o.epoch = its_epoch AND o.holder <> '';
    RETURN (SELECT o.epoch FROM ownership AS o WHERE o.source = src AND o.partition = part);
END $$;

-- The newest epoch, in a row of its own with no partition; then the marks, unless it is newer than this one.
CREATE FUNCTION checkpoint_open(src text, its_epoch bigint)
RETURNS TABLE (newest bigint, partition text, pos bigint, ahead bytea, handed_out bigint, book bytea) LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    PERFORM look_where_we_are();
    INSERT INTO checkpoint_sources AS s (source, epoch) VALUES (src, its_epoch)
        ON CONFLICT (source) DO UPDATE SET epoch = greatest(s.epoch, excluded.epoch) RETURNING s.epoch INTO newest;
    RETURN NEXT;
    IF newest = its_epoch THEN
        RETURN QUERY SELECT its_epoch, m.partition, m.position, m.ahead, m.handed_out, m.book
            FROM checkpoint_marks AS m WHERE m.source = src;
    END IF;
END $$;

-- Moves marks, and adds ranges behind those that are there: what is written again was cut differently at most, so it is
-- as it was up to the last position there, and one range may have grown. Answers the newest epoch (NULL: never opened),
-- and for each partition with new ranges how many were written.
CREATE FUNCTION checkpoint_commit(
    src text, its_epoch bigint, partitions text[], positions bigint[], aheads bytea[], all_handed_out bigint[],
    books bytea[], ending_partitions text[], firsts bigint[], lasts bigint[], plains smallint[], all_counts text[]
) RETURNS TABLE (newest bigint, partition text, written bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan TO off SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    one record;
    before record;
    place text;
BEGIN
    PERFORM look_where_we_are();
    SELECT s.epoch INTO newest FROM checkpoint_sources AS s WHERE s.source = src FOR SHARE;
    RETURN NEXT;
    IF newest IS DISTINCT FROM its_epoch THEN
        RETURN;
    END IF;
    INSERT INTO checkpoint_marks AS m (source, partition, epoch, position, handed_out, ahead, book)
        SELECT src, g.p, its_epoch, g.o, g.h, g.a, g.b
        FROM unnest(partitions, positions, aheads, all_handed_out, books) AS g (p, o, a, h, b) ORDER BY g.p
        ON CONFLICT (source, partition) DO UPDATE SET epoch = its_epoch,
            position = greatest(m.position, excluded.position), handed_out = greatest(m.handed_out, excluded.handed_out),
            ahead = CASE WHEN excluded.position >= m.position THEN excluded.ahead ELSE m.ahead END,
            book = CASE WHEN excluded.position >= m.position THEN excluded.book ELSE m.book END;
    FOR one IN
        SELECT g.* FROM unnest(ending_partitions, firsts, lasts, plains, all_counts) WITH ORDINALITY
            AS g (p, f, l, plain, counts, i) ORDER BY g.i
    LOOP
        IF one.p IS DISTINCT FROM place THEN
            IF place IS NOT NULL THEN
                partition := place;
                RETURN NEXT;
            END IF;
            place := one.p;
            written := 0;
            SELECT e.first, e.last, e.plain INTO before FROM checkpoint_endings AS e
                WHERE e.source = src AND e.partition = place ORDER BY e.first DESC LIMIT 1;
        END IF;
        CONTINUE WHEN one.l <= before.last;
        IF one.plain = before.plain AND one.f <= before.last + 1 THEN
            UPDATE checkpoint_endings AS e SET last = one.l
                WHERE e.source = src AND e.partition = place AND e.first = before.first;
            before.last := one.l;
        ELSE
            INSERT INTO checkpoint_endings AS e (source, partition, first, last, plain, counts)
                VALUES (src, place, one.f, one.l, one.plain, one.counts)
                ON CONFLICT (source, partition, first) DO UPDATE
                SET last = excluded.last, plain = excluded.plain, counts = excluded.counts;
            written := written + 1;
            SELECT one.f AS first, one.l AS last, one.plain AS plain INTO before;
        END IF;
    END LOOP;
    IF place IS NOT NULL THEN
        partition := place;
        RETURN NEXT;
    END IF;
END $$;

-- Fewer ranges instead of those up to a position; how many there are then. Nothing where the epoch is over.
CREATE FUNCTION checkpoint_thin(
    src text, its_epoch bigint, part text, upto bigint, firsts bigint[], lasts bigint[], plains smallint[],
    all_counts text[]
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM checkpoint_sources AS s WHERE s.source = src AND s.epoch = its_epoch FOR SHARE;
    IF FOUND AND cardinality(firsts) > 0 THEN
        DELETE FROM checkpoint_endings AS e WHERE e.source = src AND e.partition = part AND e.first <= upto;
        INSERT INTO checkpoint_endings (source, partition, first, last, plain, counts)
            SELECT src, part, g.* FROM unnest(firsts, lasts, plains, all_counts) AS g;
    END IF;
    RETURN (SELECT count(*) FROM checkpoint_endings AS e WHERE e.source = src AND e.partition = part);
END $$;

CREATE FUNCTION checkpoint_forget(src text) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
    DELETE FROM checkpoint_marks WHERE source = src;
    DELETE FROM checkpoint_endings WHERE source = src;
$$;

-- The newest epoch, and the rows from the noted checkpoint on unless it is newer than this one.
CREATE FUNCTION ledger_open(src text, part text, its_epoch bigint)
RETURNS TABLE (newest bigint, entries text[]) LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan TO off AS $$
#variable_conflict use_column
DECLARE
    below bigint;
BEGIN
    PERFORM look_where_we_are();
    INSERT INTO ledger_heads AS h (source, partition, epoch, passed) VALUES (src, part, its_epoch, 0)
        ON CONFLICT (source, partition) DO UPDATE SET epoch = greatest(h.epoch, excluded.epoch)
        RETURNING h.epoch, h.passed INTO newest, below;
    entries := '{}';
    IF newest = its_epoch THEN
        DELETE FROM ledger AS l WHERE l.source = src AND l.partition = part AND l.position < below AND l.place >= 5;
        SELECT coalesce(array_agg(l.entry ORDER BY l.position), '{}') INTO entries FROM ledger AS l
            WHERE l.source = src AND l.partition = part AND l.position >= below;
    END IF;
    RETURN NEXT;
END $$;

-- Each change on its own, in rounds in which each position has one: written where the row is as it was read. Answers,
-- by the number of the change, the rows that are not as wanted after it; or -1 with the newest epoch, where it is not
-- this one (0: never opened). `its_epoch` NULL: a due copy.
CREATE FUNCTION ledger_write(
    src text, part text, its_epoch bigint, rounds int[], positions bigint[], befores text[], places smallint[],
    ns bigint[], fences bigint[], afters text[]
) RETURNS TABLE (number bigint, entry text, newest bigint) LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan TO off SET jit TO off AS $$
#variable_conflict use_column
DECLARE
    head record;
    below bigint;
    wanted bigint;
    written bigint;
BEGIN
    PERFORM look_where_we_are();
    SELECT h.epoch, h.passed INTO head FROM ledger_heads AS h WHERE h.source = src AND h.partition = part FOR SHARE;
    IF its_epoch IS NOT NULL AND head.epoch IS DISTINCT FROM its_epoch THEN
        number := -1;
        newest := coalesce(head.epoch, 0);
        RETURN NEXT;
        RETURN;
    END IF;
    below := coalesce(head.passed, 0);
    PERFORM 1 FROM ledger AS l WHERE l.source = src AND l.partition = part AND l.position = ANY (positions)
        ORDER BY l.position FOR UPDATE;
    FOR round IN 1..(SELECT max(r) FROM unnest(rounds) AS r) LOOP
        WITH given AS MATERIALIZED (
            SELECT * FROM unnest(rounds, positions, befores, places, ns, fences, afters) AS g (r, p, b, at, n, f, a)
            WHERE g.r = round
        ), moved AS (
            UPDATE ledger AS l SET place = g.at, n = g.n, fence = g.f, owner = its_epoch, entry = g.a FROM given AS g
            WHERE l.source = src AND l.partition = part AND l.position = g.p AND l.entry = g.b RETURNING g.at, g.n
        ), made AS (
            INSERT INTO ledger (source, partition, position, place, n, fence, owner, entry)
                SELECT src, part, g.p, g.at, g.n, g.f, its_epoch, g.a FROM given AS g WHERE g.b IS NULL AND g.p >= below
                ORDER BY g.p ON CONFLICT DO NOTHING RETURNING 1
        ), counted AS (
            INSERT INTO ledger_ended AS e (source, partition, place, items)
                SELECT src, part, m.at, count(*) FROM moved AS m WHERE m.at >= 5 AND m.n > 0 GROUP BY m.at ORDER BY m.at
                ON CONFLICT (source, partition, place) DO UPDATE SET items = e.items + excluded.items
        )
        SELECT (SELECT count(*) FROM given), (SELECT count(*) FROM moved) + (SELECT count(*) FROM made)
            INTO wanted, written;
        IF written < wanted THEN
            RETURN QUERY SELECT g.i - 1, l.entry, NULL::bigint
                FROM unnest(rounds, positions, afters) WITH ORDINALITY AS g (r, p, a, i)
                LEFT JOIN ledger AS l ON l.source = src AND l.partition = part AND l.position = g.p
                WHERE g.r = round AND l.entry IS DISTINCT FROM g.a;
        END IF;
    END LOOP;
    IF EXISTS (SELECT 1 FROM unnest(positions, places) AS g (p, at) WHERE g.p < below AND g.at >= 5) THEN
        DELETE FROM ledger AS l WHERE l.source = src AND l.partition = part AND l.position = ANY (positions)
            AND l.position < below AND l.place >= 5;
    END IF;
END $$;

-- How many rows went, or that the epoch is over: then the newest one (0: never opened).
CREATE FUNCTION ledger_passed(src text, part text, its_epoch bigint, upto bigint)
RETURNS TABLE (gone bigint, newest bigint) LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan TO off AS $$
#variable_conflict use_column
DECLARE
    head record;
BEGIN
    PERFORM look_where_we_are();
    SELECT h.epoch, h.passed INTO head FROM ledger_heads AS h WHERE h.source = src AND h.partition = part FOR UPDATE;
    newest := coalesce(head.epoch, 0);
    gone := 0;
    IF newest = its_epoch THEN
        IF upto > head.passed THEN
            UPDATE ledger_heads AS h SET passed = upto WHERE h.source = src AND h.partition = part;
        END IF;
        DELETE FROM ledger AS l WHERE l.source = src AND l.partition = part
            AND l.position < greatest(upto, head.passed) AND l.place IN (1, 5, 6);
        GET DIAGNOSTICS gone = ROW_COUNT;
    END IF;
    RETURN NEXT;
END $$;

-- Gates, quotas and functions, under one version.

CREATE TABLE control_version (one boolean PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL);
INSERT INTO control_version (version) VALUES (1);
CREATE TRIGGER never_back BEFORE UPDATE ON control_version FOR EACH ROW WHEN (NEW.version < OLD.version)
    EXECUTE FUNCTION refuse_going_back();
CREATE TABLE gates (
    function text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    action text NOT NULL CHECK (action IN ('pause', 'drop')),
    who text NOT NULL,
    why text NOT NULL,
    since float8 NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (function, collection)
);
CREATE TABLE quotas (
    function text COLLATE "C" PRIMARY KEY,
    concurrency bigint NOT NULL CHECK (concurrency >= 0),
    rate float8 NOT NULL CHECK (rate >= 0),
    burst float8 NOT NULL CHECK (burst >= 0),
    weight float8 NOT NULL CHECK (weight >= 0)
);
CREATE TABLE functions (name text COLLATE "C" PRIMARY KEY, spec text NOT NULL);

CREATE FUNCTION control_gate(fn text, its_collection text, what text, by_whom text, its_why text, at float8)
RETURNS TABLE (version bigint, changed boolean) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    IF what = 'resume' THEN
        DELETE FROM gates AS g WHERE g.function = fn AND g.collection = its_collection;
    ELSE
        INSERT INTO gates AS g (function, collection, action, who, why, since, version)
            VALUES (fn, its_collection, what, by_whom, its_why, at, version + 1)
            ON CONFLICT (function, collection) DO UPDATE SET action = excluded.action, who = excluded.who,
                why = excluded.why, since = excluded.since, version = excluded.version;
    END IF;
    changed := FOUND;
    IF changed THEN
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
    END IF;
    RETURN NEXT;
END $$;

CREATE FUNCTION control_quota(fn text, most bigint, its_rate float8, its_burst float8, its_weight float8)
RETURNS TABLE (version bigint, changed boolean) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    IF most = 0 AND its_rate = 0 AND its_burst = 0 AND its_weight = 0 THEN
        DELETE FROM quotas AS q WHERE q.function = fn;
    ELSE
        INSERT INTO quotas AS q (function, concurrency, rate, burst, weight)
            VALUES (fn, most, its_rate, its_burst, its_weight)
            ON CONFLICT (function) DO UPDATE SET concurrency = excluded.concurrency, rate = excluded.rate,
                burst = excluded.burst, weight = excluded.weight;
    END IF;
    changed := FOUND;
    IF changed THEN
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
    END IF;
    RETURN NEXT;
END $$;

CREATE FUNCTION control_register(names text[], specs text[]) RETURNS TABLE (version bigint, changed boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    SELECT v.version INTO version FROM control_version AS v FOR UPDATE;
    INSERT INTO functions AS f (name, spec) SELECT g.n, g.s FROM unnest(names, specs) AS g (n, s)
        ON CONFLICT (name) DO UPDATE SET spec = excluded.spec WHERE f.spec <> excluded.spec;
    changed := FOUND;
    IF changed THEN
        version := version + 1;
        UPDATE control_version AS v SET version = v.version + 1;
    END IF;
    RETURN NEXT;
END $$;

-- Dead letters. Numbers are given one caller at a time, so that they are seen in their order.

CREATE TABLE dead_letters (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    tailer text COLLATE "C" NOT NULL,
    function text COLLATE "C" NOT NULL,
    priority int NOT NULL,
    collection text NOT NULL,
    tenant text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    attempts int NOT NULL,
    crashes int NOT NULL,
    first_seen float8 NOT NULL,
    died_at float8 NOT NULL,
    key text NOT NULL,
    headers text NOT NULL,
    progress text NOT NULL,
    partition text COLLATE "C" NOT NULL,
    position bigint CHECK (position >= 0),
    tries text NOT NULL,
    moving boolean NOT NULL DEFAULT false,
    payload bytea NOT NULL
);
CREATE INDEX dead_letters_function ON dead_letters (function, number);
CREATE INDEX dead_letters_position ON dead_letters (tailer, partition, position) WHERE position IS NOT NULL;
CREATE INDEX dead_letters_moving ON dead_letters (number) WHERE moving;
CREATE TABLE dead_letters_gone ( -- positions whose letter was redriven or purged
    tailer text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (tailer, partition, position)
);
CREATE TABLE dead_letters_folded ( -- how many of those went from that table, the lowest first
    tailer text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    items bigint NOT NULL CHECK (items > 0),
    PRIMARY KEY (tailer, partition)
);
CREATE TABLE redriven (
    id text COLLATE "C" PRIMARY KEY, -- of the workload that the letter became
    at float8 NOT NULL,
    tailer text NOT NULL,
    redrives int NOT NULL,
    past text NOT NULL
);
CREATE INDEX redriven_at ON redriven (at);

CREATE FUNCTION dead_letters_add(
    ids text[], tailers text[], all_functions text[], priorities int[], collections text[], tenants text[],
    outcomes text[], reasons text[], all_attempts int[], all_crashes int[], all_first_seen float8[],
    all_died_at float8[], keys text[], all_headers text[], progresses text[], partitions text[], positions bigint[],
    all_tries text[], payloads bytea[]
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' dead letters', 11));
    DELETE FROM dead_letters AS d WHERE d.id = ANY (ids);
    INSERT INTO dead_letters (id, tailer, function, priority, collection, tenant, outcome, reason, attempts, crashes,
            first_seen, died_at, key, headers, progress, partition, position, tries, payload)
        SELECT * FROM unnest(ids, tailers, all_functions, priorities, collections, tenants, outcomes, reasons,
            all_attempts, all_crashes, all_first_seen, all_died_at, keys, all_headers, progresses, partitions,
            positions, all_tries, payloads);
    DELETE FROM dead_letters_gone AS g USING unnest(tailers, partitions, positions) AS a (t, p, o)
        WHERE g.tailer = a.t AND g.partition = a.p AND g.position = a.o;
END $$;

-- Removes letters and what belongs to them. Positions are remembered one by one up to `most` of a partition; half of
-- them stay when it is more. Answers how many letters there were.
CREATE FUNCTION dead_letters_forget(numbers bigint[], most bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    place record;
    known bigint;
    folded bigint;
    removed bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' dead letters', 11));
    INSERT INTO dead_letters_gone (tailer, partition, position)
        SELECT d.tailer, d.partition, d.position FROM dead_letters AS d
        WHERE d.number = ANY (numbers) AND d.position IS NOT NULL ON CONFLICT DO NOTHING;
    FOR place IN
        SELECT DISTINCT d.tailer, d.partition FROM dead_letters AS d
        WHERE d.number = ANY (numbers) AND d.position IS NOT NULL
    LOOP
        SELECT count(*) INTO known FROM dead_letters_gone AS g
            WHERE g.tailer = place.tailer AND g.partition = place.partition;
        CONTINUE WHEN known <= most;
        DELETE FROM dead_letters_gone AS g WHERE g.tailer = place.tailer AND g.partition = place.partition
            AND g.position <= (SELECT o.position FROM dead_letters_gone AS o
                WHERE o.tailer = place.tailer AND o.partition = place.partition
                ORDER BY o.position LIMIT 1 OFFSET known - most / 2 - 1);
        GET DIAGNOSTICS folded = ROW_COUNT;
        INSERT INTO dead_letters_folded AS f (tailer, partition, items) VALUES (place.tailer, place.partition, folded)
            ON CONFLICT (tailer, partition) DO UPDATE SET items = f.items + excluded.items;
    END LOOP;
    DELETE FROM redriven AS r USING dead_letters AS d WHERE d.number = ANY (numbers) AND r.id = d.id;
    DELETE FROM dead_letters AS d WHERE d.number = ANY (numbers);
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

CREATE FUNCTION dead_letters_moved(
    numbers bigint[], most bigint, ids text[], tailers text[], all_redrives int[], pasts text[], now_at float8,
    kept float8
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    removed bigint := dead_letters_forget(numbers, most);
BEGIN
    INSERT INTO redriven AS r (id, at, tailer, redrives, past)
        SELECT g.i, now_at, g.t, g.r, g.p FROM unnest(ids, tailers, all_redrives, pasts) AS g (i, t, r, p)
        ON CONFLICT (id) DO UPDATE SET at = excluded.at, tailer = excluded.tailer, redrives = excluded.redrives,
            past = excluded.past;
    DELETE FROM redriven AS r WHERE r.at < now_at - kept
        AND NOT EXISTS (SELECT 1 FROM dead_letters AS d WHERE d.id = r.id);
    RETURN removed;
END $$;

CREATE FUNCTION dead_letters_mark(numbers bigint[], is_moving boolean) RETURNS void LANGUAGE sql
SET search_path FROM CURRENT AS $$
    UPDATE dead_letters SET moving = is_moving WHERE number = ANY (numbers) AND moving <> is_moving
$$;

-- Of the positions from `low` to before `high` that ever had a letter, the lowest ones; NULL: so long ago that it is not
-- known any more.
CREATE FUNCTION dead_letters_at(whose text, part text, low bigint, high bigint, most bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM dead_letters_folded AS f WHERE f.tailer = whose AND f.partition = part)
        AND low < coalesce((SELECT min(g.position) FROM dead_letters_gone AS g
            WHERE g.tailer = whose AND g.partition = part), 9223372036854775807) THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT coalesce(array_agg(b.position ORDER BY b.position), '{}') FROM (
        SELECT d.position FROM dead_letters AS d
        WHERE d.tailer = whose AND d.partition = part AND d.position >= low AND d.position < high
        UNION SELECT g.position FROM dead_letters_gone AS g
        WHERE g.tailer = whose AND g.partition = part AND g.position >= low AND g.position < high
        ORDER BY position LIMIT most) AS b);
END $$;

-- Results. How many bytes there are stands in sixteen rows, so that writers seldom wait for each other.

CREATE SEQUENCE result_numbers;
CREATE TABLE results (
    id text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    at bigint NOT NULL,
    size bigint NOT NULL,
    result bytea NOT NULL,
    CHECK (size = octet_length(result))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX results_number ON results (number);
CREATE TABLE results_size (slot smallint PRIMARY KEY, bytes bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO results_size (slot, bytes) SELECT n, 0 FROM generate_series(0, 15) AS n;
CREATE FUNCTION count_bytes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    change bigint := 0;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        change := (SELECT coalesce(sum(size), 0) FROM added);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        change := change - (SELECT coalesce(sum(size), 0) FROM removed);
    END IF;
    IF change <> 0 THEN
        UPDATE results_size SET bytes = bytes + change WHERE slot = pg_backend_pid() % 16;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER added AFTER INSERT ON results REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER changed AFTER UPDATE ON results REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER removed AFTER DELETE ON results REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();

CREATE FUNCTION results_put(at bigint, ids text[], blobs bytea[], max_bytes bigint) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    now_at bigint := now_micros(at);
    over bigint;
BEGIN
    INSERT INTO results AS r (id, number, at, size, result)
        SELECT g.i, nextval('result_numbers'), now_at, octet_length(g.b), g.b
        FROM (SELECT * FROM unnest(ids, blobs) AS u (i, b) ORDER BY u.i) AS g
        ON CONFLICT (id) DO UPDATE SET number = excluded.number, at = excluded.at, size = excluded.size,
            result = excluded.result;
    SELECT sum(bytes) - max_bytes INTO over FROM results_size;
    -- One writer at a time makes room; who finds another one at it leaves it to the next.
    WHILE over > 0 AND pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' results', 11)) LOOP
        WITH oldest AS (
            SELECT o.id, sum(o.size) OVER (ORDER BY o.number) - o.size AS before
            FROM (SELECT r.id, r.number, r.size FROM results AS r ORDER BY r.number LIMIT 1000) AS o
        )
        DELETE FROM results AS r USING oldest AS o WHERE r.id = o.id AND o.before < over;
        EXIT WHEN NOT FOUND;
        SELECT sum(bytes) - max_bytes INTO over FROM results_size;
    END LOOP;
END $$;

CREATE FUNCTION results_sweep(at bigint, retention bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    gone bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' results', 11)) THEN
        RETURN 0;
    END IF;
    WITH oldest AS (SELECT r.id, r.at FROM results AS r ORDER BY r.number LIMIT 10000)
    DELETE FROM results AS r USING oldest AS o WHERE r.id = o.id AND o.at < now_micros(results_sweep.at) - retention;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

-- Drops. Ranges of one place, cause and version are joined where they overlap or touch.

CREATE TABLE drops (
    source text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    cause smallint NOT NULL,
    version bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    items bigint NOT NULL,
    who text NOT NULL,
    why text NOT NULL,
    at float8 NOT NULL,
    PRIMARY KEY (source, partition, cause, version, first),
    CHECK (last >= first),
    CHECK (items BETWEEN 0 AND last - first + 1)
);

CREATE FUNCTION drops_add(
    src text, part text, firsts bigint[], lasts bigint[], all_items bigint[], causes smallint[], versions bigint[],
    whos text[], whys text[], ats float8[]
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    one record;
    near record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' drops ' || src || '/' || part, 11));
    FOR one IN
        SELECT * FROM unnest(firsts, lasts, all_items, causes, versions, whos, whys, ats)
            AS g (f, l, items, cause, version, who, why, at)
    LOOP
        WITH joined AS (
            DELETE FROM drops AS d WHERE d.source = src AND d.partition = part AND d.cause = one.cause
                AND d.version = one.version AND d.last >= one.f - 1 AND d.first <= one.l + 1 RETURNING d.*
        )
        SELECT min(j.first) AS f, max(j.last) AS l, max(j.at) AS at,
            sum(j.items - greatest(0, least(j.last, one.l) - greatest(j.first, one.f) + 1))::bigint AS more
            INTO near FROM joined AS j;
        INSERT INTO drops (source, partition, cause, version, first, last, items, who, why, at) VALUES (
            src, part, one.cause, one.version, least(near.f, one.f), greatest(near.l, one.l),
            one.items + coalesce(near.more, 0), one.who, one.why, greatest(near.at, one.at)
        );
    END LOOP;
    RETURN (SELECT count(*) FROM drops AS d WHERE d.source = src AND d.partition = part);
END $$;

-- Fewer ranges instead of these, if they are still as they were.
CREATE FUNCTION drops_thin(
    src text, part text, old_causes smallint[], old_versions bigint[], old_firsts bigint[], old_items bigint[],
    firsts bigint[], lasts bigint[], all_items bigint[], causes smallint[], versions bigint[], whos text[],
    whys text[], ats float8[]
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    same bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' drops ' || src || '/' || part, 11));
    SELECT count(*) INTO same FROM drops AS d JOIN unnest(old_causes, old_versions, old_firsts, old_items)
        AS o (c, v, f, i) ON d.cause = o.c AND d.version = o.v AND d.first = o.f AND d.items = o.i
        WHERE d.source = src AND d.partition = part;
    IF same = cardinality(old_firsts) THEN
        DELETE FROM drops AS d USING unnest(old_causes, old_versions, old_firsts) AS o (c, v, f)
            WHERE d.source = src AND d.partition = part AND d.cause = o.c AND d.version = o.v AND d.first = o.f;
        INSERT INTO drops (source, partition, first, last, items, cause, version, who, why, at)
            SELECT src, part, g.* FROM unnest(firsts, lasts, all_items, causes, versions, whos, whys, ats) AS g;
    END IF;
END $$;

-- The inventory. `identity` is a digest of name and version, since names may be longer than what an index takes.

CREATE TABLE inventory (
    source text COLLATE "C" NOT NULL,
    position bigint NOT NULL CHECK (position >= 0),
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    identity bytea NOT NULL CHECK (octet_length(identity) = 32),
    PRIMARY KEY (source, position),
    UNIQUE (source, identity)
);
CREATE INDEX inventory_names ON inventory (source, left(name, 400));
CREATE TABLE inventory_floors (source text COLLATE "C" PRIMARY KEY, name text COLLATE "C" NOT NULL);

CREATE FUNCTION inventory_offer(src text, names text[], versions text[], identities bytea[]) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    added bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' inventory ' || src, 11));
    INSERT INTO inventory (source, position, name, version, identity)
        SELECT src, (SELECT coalesce(max(i.position) + 1, 0) FROM inventory AS i WHERE i.source = src)
            + row_number() OVER (ORDER BY o.place) - 1, o.name, o.version, o.identity
        FROM unnest(names, versions, identities) WITH ORDINALITY AS o (name, version, identity, place)
        WHERE NOT EXISTS (SELECT 1 FROM inventory AS i WHERE i.source = src AND i.identity = o.identity);
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END $$;

CREATE FUNCTION inventory_raise_floor(src text, kept bigint, below bigint) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    floor text COLLATE "C";
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' inventory ' || src, 11));
    SELECT i.name INTO floor FROM inventory AS i WHERE i.source = src
        ORDER BY left(i.name, 400) DESC, i.name DESC LIMIT 1 OFFSET kept;
    INSERT INTO inventory_floors AS f (source, name) VALUES (src, coalesce(floor, ''))
        ON CONFLICT (source) DO UPDATE SET name = greatest(f.name, excluded.name) RETURNING f.name INTO floor;
    DELETE FROM inventory AS i WHERE i.source = src AND i.position < below AND i.name <= floor
        AND i.position < (SELECT max(m.position) FROM inventory AS m WHERE m.source = src);
    RETURN floor;
END $$;

CREATE FUNCTION inventory_forget(src text) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
    DELETE FROM inventory WHERE source = src;
    DELETE FROM inventory_floors WHERE source = src;
$$;

-- Segments: each begins where the one before it ends.

CREATE TABLE segments (
    source text COLLATE "C" NOT NULL,
    first bigint NOT NULL CHECK (first >= 0),
    items bigint NOT NULL CHECK (items > 0),
    ordinal bigint NOT NULL,
    version text NOT NULL,
    start bigint NOT NULL,
    length bigint NOT NULL,
    refused text NOT NULL,
    absent boolean NOT NULL,
    ended boolean NOT NULL,
    PRIMARY KEY (source, first)
);

CREATE FUNCTION segments_append(
    src text, firsts bigint[], all_items bigint[], ordinals bigint[], versions text[], starts bigint[],
    lengths bigint[], refusals text[], absences boolean[], ends boolean[]
) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' segments ' || src, 11));
    IF firsts[1] <> coalesce((SELECT s.first + s.items FROM segments AS s WHERE s.source = src
                              ORDER BY s.first DESC LIMIT 1), 0) THEN
        RETURN false;
    END IF;
    INSERT INTO segments (source, first, items, ordinal, version, start, length, refused, absent, ended)
        SELECT src, g.* FROM unnest(firsts, all_items, ordinals, versions, starts, lengths, refusals, absences, ends)
            AS g;
    RETURN true;
END $$;

-- Replays.

CREATE TABLE replays (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    is_over boolean NOT NULL DEFAULT false,
    replay text NOT NULL
);
CREATE INDEX replays_over ON replays (is_over, number);
CREATE TRIGGER never_back BEFORE UPDATE ON replays FOR EACH ROW WHEN (OLD.is_over AND NOT NEW.is_over)
    EXECUTE FUNCTION refuse_going_back();

CREATE FUNCTION replays_add(kept bigint, what text) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    given bigint;
BEGIN
    INSERT INTO replays (replay) VALUES (what) RETURNING number INTO given;
    DELETE FROM replays AS r WHERE r.is_over AND r.number <=
        (SELECT o.number FROM replays AS o WHERE o.is_over ORDER BY o.number DESC LIMIT 1 OFFSET kept);
    RETURN given;
END $$;

-- Schedules. Positions of runs are dense: who fires holds the row of the end.

CREATE TABLE schedule_definitions (
    version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule text NOT NULL
);
CREATE TABLE schedules (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL UNIQUE REFERENCES schedule_definitions,
    paused boolean NOT NULL,
    decided float8 NOT NULL,
    runs bigint NOT NULL CHECK (runs >= 0),
    passed_over bigint NOT NULL CHECK (passed_over >= 0),
    next_at float8 NOT NULL,
    is_kept boolean NOT NULL
);
CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at > 0;
CREATE TABLE schedule_runs (
    position bigint PRIMARY KEY,
    schedule text COLLATE "C" NOT NULL,
    version bigint NOT NULL REFERENCES schedule_definitions,
    instant float8 NOT NULL,
    fired_at float8 NOT NULL,
    by_hand boolean NOT NULL,
    UNIQUE (schedule, instant)
);
CREATE INDEX schedule_runs_version ON schedule_runs (version);
CREATE TABLE schedule_runs_end (one boolean PRIMARY KEY DEFAULT true CHECK (one), position bigint NOT NULL);
INSERT INTO schedule_runs_end (position) VALUES (0);
CREATE TRIGGER never_back BEFORE UPDATE ON schedule_runs_end FOR EACH ROW WHEN (NEW.position < OLD.position)
    EXECUTE FUNCTION refuse_going_back();

CREATE FUNCTION forget_definitions(versions bigint[]) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
    DELETE FROM schedule_definitions AS d WHERE d.version = ANY (versions)
        AND NOT EXISTS (SELECT 1 FROM schedules AS s WHERE s.version = d.version)
        AND NOT EXISTS (SELECT 1 FROM schedule_runs AS r WHERE r.version = d.version)
$$;

-- The new version; 0: another version is there than expected; -1: there are too many.
CREATE FUNCTION schedules_put(
    its_name text, expected bigint, definition text, is_paused boolean, its_decided float8, its_runs bigint,
    its_passed_over bigint, its_next_at float8, kept boolean, most bigint
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    before bigint;
    given bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' schedules', 11));
    SELECT s.version INTO before FROM schedules AS s WHERE s.name = its_name FOR UPDATE;
    IF coalesce(before, 0) <> expected THEN
        RETURN 0;
    ELSIF before IS NULL AND (SELECT count(*) FROM schedules) >= most THEN
        RETURN -1;
    END IF;
    INSERT INTO schedule_definitions (schedule) VALUES (definition) RETURNING version INTO given;
    INSERT INTO schedules (name, version, paused, decided, runs, passed_over, next_at, is_kept)
        VALUES (its_name, given, is_paused, its_decided, its_runs, its_passed_over, its_next_at, kept)
        ON CONFLICT (name) DO UPDATE SET version = excluded.version, paused = excluded.paused,
            decided = excluded.decided, runs = excluded.runs, passed_over = excluded.passed_over,
            next_at = excluded.next_at, is_kept = excluded.is_kept;
    PERFORM forget_definitions(ARRAY[expected]);
    RETURN given;
END $$;

CREATE FUNCTION schedules_remove(its_name text) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM schedules AS s WHERE s.name = its_name RETURNING s.version INTO gone;
    IF gone IS NULL THEN
        RETURN false;
    END IF;
    PERFORM forget_definitions(ARRAY[gone]);
    RETURN true;
END $$;

-- Runs at the end, for those instants that have none. Answers the position of the first.
CREATE FUNCTION add_runs(its_name text, its_version bigint, instants float8[], at float8, hand boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    begin_at bigint;
    added bigint;
BEGIN
    SELECT e.position INTO begin_at FROM schedule_runs_end AS e FOR UPDATE;
    INSERT INTO schedule_runs (position, schedule, version, instant, fired_at, by_hand)
        SELECT begin_at + row_number() OVER (ORDER BY i.instant) - 1, its_name, its_version, i.instant, at, hand
        FROM unnest(instants) AS i (instant) WHERE NOT EXISTS
            (SELECT 1 FROM schedule_runs AS r WHERE r.schedule = its_name AND r.instant = i.instant);
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added = 0 THEN
        RETURN NULL;
    END IF;
    UPDATE schedule_runs_end SET position = begin_at + added;
    RETURN begin_at;
END $$;

CREATE FUNCTION schedules_fire(
    its_name text, its_version bigint, was_decided float8, now_decided float8, more_passed_over bigint,
    its_next_at float8, instants float8[], at float8
) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE schedules AS s SET decided = now_decided, passed_over = s.passed_over + more_passed_over,
        next_at = its_next_at, runs = s.runs + cardinality(instants)
        WHERE s.name = its_name AND s.version = its_version AND s.decided = was_decided;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM add_runs(its_name, its_version, instants, at, false);
    RETURN true;
END $$;

CREATE FUNCTION schedules_run(its_name text, instant float8, at float8)
RETURNS TABLE (pos bigint, its_version bigint) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    SELECT s.version INTO its_version FROM schedules AS s WHERE s.name = its_name FOR SHARE;
    IF FOUND THEN
        pos := add_runs(its_name, its_version, ARRAY[instant], at, true);
        IF pos IS NOT NULL THEN
            RETURN NEXT;
        END IF;
    END IF;
END $$;

CREATE FUNCTION schedules_trim(upto bigint, before float8, kept bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    gone bigint[];
    ended bigint[];
BEGIN
    WITH removed AS (
        DELETE FROM schedule_runs AS r WHERE r.position < upto AND (r.fired_at < before OR r.position < upto - kept)
        RETURNING r.version
    ) SELECT coalesce(array_agg(version), '{}') INTO gone FROM removed;
    WITH removed AS (
        DELETE FROM schedules AS s WHERE NOT s.is_kept AND NOT s.paused AND s.next_at = 0 AND s.decided < before
        RETURNING s.version
    ) SELECT coalesce(array_agg(version), '{}') INTO ended FROM removed;
    PERFORM forget_definitions(gone || ended);
    RETURN cardinality(gone);
END $$;
