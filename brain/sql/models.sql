The embedding model and text analysis that a namespace was indexed with.

-- name: active
-- The model in use.
SELECT model, dimensions, analysis FROM embedding_models WHERE namespace = %(namespace)s AND active

-- name: register
-- The first write of a namespace settles its model.
INSERT INTO embedding_models (namespace, model, dimensions, analysis, active, created_at)
VALUES (%(namespace)s, %(model)s, %(dimensions)s, %(analysis)s, true, %(as_of)s)

-- name: activate
-- Makes one model the one in use; the other stays readable until it is purged.
INSERT INTO embedding_models (namespace, model, dimensions, analysis, active, created_at)
VALUES (%(namespace)s, %(model)s, %(dimensions)s, %(analysis)s, true, %(as_of)s)
ON CONFLICT (namespace, model) DO UPDATE
SET active = true, dimensions = excluded.dimensions, analysis = excluded.analysis

-- name: deactivate
-- Takes the model in use out of use.
UPDATE embedding_models SET active = false WHERE namespace = %(namespace)s AND active

-- name: extent
-- How many facts and different texts there are, and how many of the texts have no row of a model.
SELECT (SELECT count(DISTINCT m.id) FROM memory m WHERE m.namespace = %(namespace)s AND NOT m.tombstone) AS facts,
    count(*) AS texts, count(*) FILTER (WHERE e.content IS NULL) AS missing
FROM (SELECT DISTINCT m.content FROM memory m WHERE m.namespace = %(namespace)s AND NOT m.tombstone) t
LEFT JOIN embeddings e ON e.namespace = %(namespace)s AND e.model = %(model)s AND e.content = t.content

-- name: missing_texts
-- The next texts without a row of a model, in the order of their documents.
SELECT m.doc, m.content
FROM memory m
WHERE m.namespace = %(namespace)s AND NOT m.tombstone AND m.doc > %(after)s
  AND NOT EXISTS (SELECT FROM embeddings e
      WHERE e.namespace = m.namespace AND e.model = %(model)s AND e.content = m.content)
ORDER BY m.doc
LIMIT %(limit)s

-- name: in_use
-- The model in use, the floor that holds as of the instant for the asked model and text analysis, whether any text
-- waits for its vector of it, and whether it has a complete index that its pgvector scans iteratively (from 0.8 on).
SELECT a.model, a.dimensions, a.analysis,
    (SELECT c.floor FROM calibrations c
     WHERE c.namespace = %(namespace)s AND c.model = %(model)s AND c.analysis = %(analysis)s AND c.known_from <= %(as_of)s
     ORDER BY c.known_from DESC LIMIT 1) AS floor,
    EXISTS (SELECT FROM embeddings_pending p WHERE p.namespace = %(namespace)s AND p.model = %(model)s) AS waiting,
    EXISTS (SELECT FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
        WHERE c.relname = %(index)s AND i.indisvalid AND i.indisready)
    AND (SELECT string_to_array(extversion, '.')::int[] >= '{0,8}' FROM pg_extension WHERE extname = 'vector') AS indexed
FROM (SELECT 1) AS one LEFT JOIN embedding_models a ON a.namespace = %(namespace)s AND a.active

-- name: vectors
-- How many texts have their row of a model, at most so many.
SELECT count(*) FROM (
    SELECT FROM embeddings WHERE namespace = %(namespace)s AND model = %(model)s LIMIT %(most)s
) e

-- name: add_calibration
-- Stores a floor with what it was chosen on; it holds from the instant on.
INSERT INTO calibrations (namespace, model, analysis, floor, hits, kept, foreigners, answered, client, known_from)
VALUES (%(namespace)s, %(model)s, %(analysis)s, %(floor)s, %(hits)s, %(kept)s, %(foreigners)s, %(answered)s,
    %(client)s, %(as_of)s)
