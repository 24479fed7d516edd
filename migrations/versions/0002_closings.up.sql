-- Rows that a reader of the present no longer sees. The statistics of a search as of any instant are then differences
-- of two running counts: what was written up to the instant, less what was closed up to it.

-- closer is the number of the row whose writing hid this one for good; a row that never was visible in its own present
-- closes itself. docs_before and terms_before count the earlier closings of the scope.
CREATE TABLE memory_closed (
    namespace    text    NOT NULL,
    scope        text    NOT NULL,
    closer       bigint  NOT NULL,
    doc          bigint  NOT NULL,
    length       integer NOT NULL,
    docs_before  bigint  NOT NULL,
    terms_before bigint  NOT NULL,
    CONSTRAINT memory_closed_pkey PRIMARY KEY (namespace, scope, closer, doc) INCLUDE (length, docs_before, terms_before),
    CONSTRAINT memory_closed_by_later CHECK (closer >= doc),
    CONSTRAINT memory_closed_doc_key UNIQUE (namespace, doc),
    CONSTRAINT memory_closed_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES memory (namespace, doc)
);

-- Rows that come or go with the passage of time. They are few; a search looks at each of them.
CREATE TABLE memory_timed (
    namespace text    NOT NULL,
    scope     text    NOT NULL,
    doc       bigint  NOT NULL,
    length    integer NOT NULL,
    CONSTRAINT memory_timed_pkey PRIMARY KEY (namespace, scope, doc) INCLUDE (length),
    CONSTRAINT memory_timed_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES memory (namespace, doc)
);

ALTER TABLE postings
    ADD COLUMN closer bigint,
    ADD COLUMN closed_before integer,
    DROP CONSTRAINT postings_pkey,
    ADD CONSTRAINT postings_pkey PRIMARY KEY (namespace, term, scope, doc) INCLUDE (tf, length, docs_before, closer);
-- closed_before counts the earlier closings among the postings of the same term and scope.
CREATE INDEX postings_closed_idx ON postings (namespace, term, scope, closer, doc) INCLUDE (closed_before)
    WHERE closer IS NOT NULL;
DROP INDEX memory_visible_mutable_idx;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memory_closed', 'memory_timed'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_namespace ON %I USING (namespace = current_setting(''brain.namespace'', true)) '
            'WITH CHECK (namespace = current_setting(''brain.namespace'', true))', name);
        EXECUTE format('GRANT SELECT, INSERT ON %I TO brain_app', name);
    END LOOP;
    GRANT UPDATE (closer, closed_before) ON postings TO brain_app;
    -- What is there already is counted below, by an owner to whom every namespace must be visible for a moment.
    FOREACH name IN ARRAY ARRAY['memory', 'memory_visible', 'memory_closed', 'memory_timed', 'postings', 'scopes'] LOOP
        EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', name);
    END LOOP;
END $$;

CREATE TEMPORARY TABLE present ON COMMIT DROP AS
SELECT v.namespace, v.id, v.doc, v.known_from, v.known_to, greatest(v.known_from, v.valid_from) AS starts,
    least(v.known_to, v.valid_to) AS ends
FROM memory_visible v
WHERE least(v.known_to, v.valid_to) IS NULL OR least(v.known_to, v.valid_to) > greatest(v.known_from, v.valid_from);
CREATE INDEX ON present (namespace, doc);
ANALYZE present;

INSERT INTO memory_timed (namespace, scope, doc, length)
SELECT DISTINCT m.namespace, m.scope, m.doc, m.length
FROM present p JOIN memory m ON m.namespace = p.namespace AND m.doc = p.doc
WHERE p.starts <> p.known_from OR p.ends IS DISTINCT FROM p.known_to;

INSERT INTO memory_closed (namespace, scope, closer, doc, length, docs_before, terms_before)
SELECT c.namespace, c.scope, c.closer, c.doc, c.length,
    row_number() OVER earlier - 1, sum(c.length) OVER earlier - c.length
FROM (
    SELECT m.namespace, m.scope, m.doc, m.length, greatest(m.doc, (
        SELECT max(a.doc) FROM memory a
        WHERE a.namespace = m.namespace AND a.id = m.id
          AND a.known_from = (SELECT max(p.ends) FROM present p WHERE p.namespace = m.namespace AND p.doc = m.doc)
    )) AS closer
    FROM memory m
    WHERE NOT m.tombstone
      AND NOT EXISTS (SELECT FROM memory_timed t WHERE t.namespace = m.namespace AND t.doc = m.doc)
      AND NOT EXISTS (
          SELECT FROM present p WHERE p.namespace = m.namespace AND p.doc = m.doc AND p.known_to IS NULL
      )
) c
WINDOW earlier AS (PARTITION BY c.namespace, c.scope ORDER BY c.closer, c.doc);

ANALYZE memory_closed;

UPDATE postings p SET closer = c.closer, closed_before = c.closed_before
FROM (
    SELECT q.ctid AS place, m.closer,
        row_number() OVER (PARTITION BY q.namespace, q.term, q.scope ORDER BY m.closer, q.doc) - 1 AS closed_before
    FROM memory_closed m
    JOIN scopes s ON s.namespace = m.namespace AND s.scope = m.scope
    JOIN postings q ON q.namespace = m.namespace AND q.scope = s.number AND q.doc = m.doc
) c
WHERE p.ctid = c.place;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memory', 'memory_visible', 'memory_closed', 'memory_timed', 'postings', 'scopes'] LOOP
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    END LOOP;
END $$;
