What a brain holds, for people and monitors.

-- name: counts
-- Rows of each layer that are visible as of the instant.
SELECT
    (SELECT count(*) FROM constraints t WHERE t.namespace = %(namespace)s AND t.status = 'active'
        AND t.known_from <= %(as_of)s AND (t.known_to IS NULL OR t.known_to > %(as_of)s)) AS constraints,
    (SELECT count(*) FROM records_visible t WHERE t.namespace = %(namespace)s
        AND t.known_from <= %(as_of)s AND (t.known_to IS NULL OR t.known_to > %(as_of)s)
        AND (t.valid_from IS NULL OR t.valid_from <= %(as_of)s) AND (t.valid_to IS NULL OR t.valid_to > %(as_of)s)) AS records,
    (SELECT count(*) FROM pins t WHERE t.namespace = %(namespace)s
        AND t.known_from <= %(as_of)s AND (t.known_to IS NULL OR t.known_to > %(as_of)s)) AS pins,
    (SELECT count(*) FROM wiki t WHERE t.namespace = %(namespace)s
        AND t.known_from <= %(as_of)s AND (t.known_to IS NULL OR t.known_to > %(as_of)s)) AS wiki,
    (SELECT count(*) FROM threads t WHERE t.namespace = %(namespace)s
        AND t.status IN ('open', 'waiting', 'paused')
        AND t.known_from <= %(as_of)s AND (t.known_to IS NULL OR t.known_to > %(as_of)s)) AS threads,
    (SELECT count(*) FROM memory_visible t WHERE t.namespace = %(namespace)s
        AND t.known_from <= %(as_of)s AND (t.known_to IS NULL OR t.known_to > %(as_of)s)
        AND (t.valid_from IS NULL OR t.valid_from <= %(as_of)s) AND (t.valid_to IS NULL OR t.valid_to > %(as_of)s)) AS memory

-- name: pending
-- Texts that wait for a vector of this embedding model.
SELECT count(*) FROM embeddings_pending WHERE namespace = %(namespace)s AND model = %(model)s

-- name: pending_texts
-- Some of those, for the back-fill.
SELECT p.content, m.title, m.text
FROM embeddings_pending p
CROSS JOIN LATERAL (
    SELECT m.title, m.text FROM memory m
    WHERE m.namespace = p.namespace AND m.content = p.content
    ORDER BY m.doc LIMIT 1
) m
WHERE p.namespace = %(namespace)s AND p.model = %(model)s
ORDER BY p.content
LIMIT %(limit)s

-- name: server
-- Versions, and how the application's role stands.
SELECT current_setting('server_version_num')::int AS server_version,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector_version,
    (SELECT version_num FROM alembic_version) AS schema_version,
    (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS bypasses_policies,
    (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.relname <> 'alembic_version'
       AND NOT (c.relrowsecurity AND c.relforcerowsecurity)) AS unprotected_tables
