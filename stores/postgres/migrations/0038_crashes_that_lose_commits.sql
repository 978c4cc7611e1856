-- A server that waits for no commit (durability: relaxed) may have lost its last ones in a crash: claims of a queue, and
-- who has which stream. What they gave out may still run.
-- Beside 33.

-- The mark that a server keeps through a shutdown and not through a crash: unlogged tables are empty after one.
CREATE UNLOGGED TABLE no_crash_since (one boolean PRIMARY KEY DEFAULT true CHECK (one));
INSERT INTO no_crash_since DEFAULT VALUES;

-- Looks for the mark. The first one who misses it sets it again, and says that these tables were put back: then claims
-- wait for the lease of a source, and epochs rise. Answers whether that was so. Both are lost together in another crash.
CREATE FUNCTION look_for_a_crash() RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT SET jit TO off AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM no_crash_since) THEN
        RETURN false;
    END IF;
    INSERT INTO no_crash_since DEFAULT VALUES ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM restored();
    RETURN true;
END $$;
