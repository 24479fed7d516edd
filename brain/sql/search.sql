The memory layer's two search legs. Visibility comes first: statistics and candidates are taken from the visible rows
only. The lines before the first name are a note to the reader.

-- name: visible
-- The rows of the asked scopes at the point (as_of, valid_at), read from one index.
SELECT v.doc, v.length
FROM memory_visible v
WHERE v.namespace = %(namespace)s
  AND (%(scopes)s::text[] IS NULL OR v.scope = ANY(%(scopes)s))
  AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(valid_at)s)
  AND (v.valid_to IS NULL OR v.valid_to > %(valid_at)s)

-- name: visible_filtered
-- The same, narrowed by kind, tags and the period of the event.
SELECT v.doc, v.length
FROM memory_visible v
JOIN memory m ON m.namespace = v.namespace AND m.doc = v.doc
WHERE v.namespace = %(namespace)s
  AND (%(scopes)s::text[] IS NULL OR v.scope = ANY(%(scopes)s))
  AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(valid_at)s)
  AND (v.valid_to IS NULL OR v.valid_to > %(valid_at)s)
  AND (%(kinds)s::text[] IS NULL OR m.kind = ANY(%(kinds)s))
  AND (%(tags)s::text[] IS NULL OR m.tags @> %(tags)s)
  AND (%(since)s::timestamptz IS NULL OR m.occurred >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR m.occurred < %(until)s)

-- name: lexical
-- BM25 over the visible rows: k1 1.2, b 0.75, idf ln(1 + (N - n + 0.5) / (n + 0.5)); coverage is the idf-weighted
-- share of the query's terms that the row contains. Sums run in term order, so that equal rows get equal bits.
WITH visible AS MATERIALIZED ({visible}),
corpus AS (
    SELECT count(*)::float8 AS rows, avg(length)::float8 AS average FROM visible
),
matching AS MATERIALIZED (
    SELECT p.term, p.doc, p.tf::float8 AS tf, p.length::float8 AS length
    FROM postings p JOIN visible v ON v.doc = p.doc
    WHERE p.namespace = %(namespace)s AND p.term = ANY(%(terms)s)
),
frequency AS (
    SELECT term, count(*)::float8 AS df FROM matching GROUP BY term
),
weight AS MATERIALIZED (
    SELECT q.term, ln(1 + (c.rows - coalesce(f.df, 0) + 0.5) / (coalesce(f.df, 0) + 0.5)) AS idf
    FROM unnest(%(terms)s::text[]) AS q (term) CROSS JOIN corpus c LEFT JOIN frequency f ON f.term = q.term
)
SELECT
    m.doc,
    sum(w.idf * m.tf * 2.2 / (m.tf + 1.2 * (0.25 + 0.75 * m.length / c.average)) ORDER BY m.term) AS score,
    sum(w.idf ORDER BY m.term) / (SELECT sum(x.idf ORDER BY x.term) FROM weight x) AS coverage
FROM matching m JOIN weight w ON w.term = m.term CROSS JOIN corpus c
GROUP BY m.doc
HAVING NOT %(strict)s OR count(*) = cardinality(%(terms)s::text[])
ORDER BY score DESC, m.doc
LIMIT %(depth)s

-- name: vector
-- Exact cosine similarity over the visible rows that have a vector of this model. A vector without a direction gives
-- NaN, which the guard keeps out.
WITH visible AS MATERIALIZED ({visible}),
compared AS (
    SELECT v.doc, e.embedding <=> %(vector)s::vector AS distance
    FROM visible v
    JOIN memory m ON m.namespace = %(namespace)s AND m.doc = v.doc
    JOIN embeddings e ON e.namespace = m.namespace AND e.model = %(model)s AND e.content_hash = m.content_hash
    WHERE e.embedding IS NOT NULL
)
SELECT doc, 1 - distance AS score
FROM compared
WHERE distance = distance AND distance <> 'NaN'::float8
ORDER BY distance, doc
LIMIT %(depth)s

-- name: coverage
-- How many rows were searched, and how many of them have no vector of this model.
WITH visible AS MATERIALIZED ({visible})
SELECT count(*) AS searched, count(*) FILTER (WHERE e.content_hash IS NULL) AS without_vector
FROM visible v
JOIN memory m ON m.namespace = %(namespace)s AND m.doc = v.doc
LEFT JOIN embeddings e ON e.namespace = m.namespace AND e.model = %(model)s AND e.content_hash = m.content_hash

-- name: similarities
-- Cosine similarity of some rows, for the hits that only the lexical leg found.
SELECT m.doc, 1 - (e.embedding <=> %(vector)s::vector) AS score
FROM memory m
JOIN embeddings e ON e.namespace = m.namespace AND e.model = %(model)s AND e.content_hash = m.content_hash
WHERE m.namespace = %(namespace)s AND m.doc = ANY(%(docs)s) AND e.embedding IS NOT NULL
