The embedding model and text analysis that a namespace was indexed with.

-- name: active
-- The model in use.
SELECT model, dimensions, analysis FROM embedding_models WHERE namespace = %(namespace)s AND active

-- name: register
-- The first write of a namespace settles its model.
INSERT INTO embedding_models (namespace, model, dimensions, analysis, active, created_at)
VALUES (%(namespace)s, %(model)s, %(dimensions)s, %(analysis)s, true, %(as_of)s)
