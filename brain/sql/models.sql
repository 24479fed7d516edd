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
ON CONFLICT (namespace, model) DO UPDATE SET active = true

-- name: deactivate
-- Takes the model in use out of use.
UPDATE embedding_models SET active = false WHERE namespace = %(namespace)s AND active

-- name: distinct_texts
-- How many different texts there are to embed.
SELECT count(DISTINCT content) FROM memory WHERE namespace = %(namespace)s AND NOT tombstone

-- name: missing_texts
-- Some texts without a row of a model.
SELECT m.content, min(m.doc) AS doc
FROM memory m
WHERE m.namespace = %(namespace)s AND NOT m.tombstone
  AND NOT EXISTS (SELECT FROM embeddings e
      WHERE e.namespace = m.namespace AND e.model = %(model)s AND e.content = m.content)
GROUP BY m.content
ORDER BY doc
LIMIT %(limit)s
