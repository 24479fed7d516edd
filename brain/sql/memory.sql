Facts: looking up before a write, the derived search rows, and reading by event time.

-- name: same_content
-- Visible facts with the same normalised text in the same scope. The few rows of a text are sought before anything is
-- joined: a planner without statistics would rather read all that is visible in the scope.
WITH same AS MATERIALIZED (
    SELECT t.doc, t.id, t.content FROM memory t
    WHERE t.namespace = %(namespace)s AND t.content = ANY(%(contents)s) AND t.scope = %(scope)s
)
SELECT t.content, t.id
FROM same t JOIN memory_visible v ON v.namespace = %(namespace)s AND v.doc = t.doc
WHERE v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(as_of)s) AND (v.valid_to IS NULL OR v.valid_to > %(as_of)s)
ORDER BY t.doc

-- name: same_words
-- Other visible facts with the same words and numbers in the same scope as each asked one, with their similarity.
-- Facts that share their words are few, and are sought before anything is joined: a batch has just been written, so
-- that no statistics keep the planner from comparing every fact with every other.
WITH alike AS MATERIALIZED (
    SELECT t.doc, t.id, t.version, t.content, t.words, t.scope, count(*) OVER (PARTITION BY t.words, t.scope) AS facts
    FROM memory t
    WHERE t.namespace = %(namespace)s AND t.words = ANY(ARRAY(
        SELECT a.words FROM memory a WHERE a.namespace = %(namespace)s AND a.doc = ANY(%(docs)s)
    ))
),
shared AS MATERIALIZED (
    SELECT a.*, a.doc = ANY(%(docs)s) AS asked FROM alike a WHERE a.facts > 1
),
pair AS MATERIALIZED (
    SELECT q.doc AS asked, q.content AS asked_content, t.doc, t.id, t.version, t.content
    FROM shared q JOIN shared t ON t.words = q.words AND t.scope = q.scope AND t.id <> q.id
    WHERE q.asked
)
SELECT p.asked AS doc, p.id, p.version, 1 - (e.embedding <=> o.embedding) AS similarity
FROM pair p
JOIN memory_visible v ON v.namespace = %(namespace)s AND v.doc = p.doc
JOIN embeddings o ON o.namespace = %(namespace)s AND o.model = %(model)s AND o.content = p.asked_content
JOIN embeddings e ON e.namespace = %(namespace)s AND e.model = %(model)s AND e.content = p.content
WHERE v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(as_of)s) AND (v.valid_to IS NULL OR v.valid_to > %(as_of)s)
  AND e.embedding IS NOT NULL AND o.embedding IS NOT NULL
ORDER BY p.asked, p.doc

-- name: newest_by_key
-- The newest version of each named key that was known, visible or not.
SELECT DISTINCT ON (t.key) {columns}
FROM memory t
WHERE t.namespace = %(namespace)s AND t.key = ANY(%(keys)s) AND t.known_from <= %(as_of)s
ORDER BY t.key, t.version DESC

-- name: successor
-- The fact that superseded another, if one did.
SELECT t.id FROM memory t
WHERE t.namespace = %(namespace)s AND t.supersedes = %(id)s AND t.known_from <= %(as_of)s
LIMIT 1

-- name: scope_totals
-- How many searchable rows a scope has so far, and the sum of their lengths.
SELECT docs_before + (NOT tombstone)::int AS docs, terms_before + CASE WHEN tombstone THEN 0 ELSE length END AS terms
FROM memory
WHERE namespace = %(namespace)s AND scope = %(scope)s
ORDER BY doc DESC LIMIT 1

-- name: term_totals
-- How many rows of a scope contain each term so far.
SELECT q.term, p.docs_before + 1 AS docs
FROM unnest(%(terms)s::text[]) AS q (term)
CROSS JOIN LATERAL (
    SELECT docs_before FROM postings
    WHERE namespace = %(namespace)s AND term = q.term AND scope = %(number)s
    ORDER BY doc DESC LIMIT 1
) p

-- name: add_postings
-- Indexes rows of one scope.
INSERT INTO postings (namespace, term, scope, doc, tf, length, docs_before)
SELECT %(namespace)s, p.term, %(number)s, p.doc, p.tf, p.length, p.docs_before
FROM unnest(%(terms)s::text[], %(docs)s::bigint[], %(tfs)s::smallint[], %(lengths)s::int[], %(befores)s::int[])
    AS p (term, doc, tf, length, docs_before)

-- name: embedded
-- Which texts already have their row of this model.
SELECT content FROM embeddings
WHERE namespace = %(namespace)s AND model = %(model)s AND content = ANY(%(contents)s)

-- name: add_embeddings
-- Stores vectors; a text that has its row keeps it.
INSERT INTO embeddings (namespace, model, content, embedding)
SELECT %(namespace)s, %(model)s, e.content, e.embedding::vector
FROM unnest(%(contents)s::uuid[], %(vectors)s::text[]) AS e (content, embedding)
ON CONFLICT DO NOTHING

-- name: settle_pending
-- What has its row now waits no longer.
DELETE FROM embeddings_pending
WHERE namespace = %(namespace)s AND model = %(model)s AND content = ANY(%(contents)s)

-- name: add_pending
-- Notes texts that the model could not be asked about.
INSERT INTO embeddings_pending (namespace, model, content)
SELECT %(namespace)s, %(model)s, c.content FROM unnest(%(contents)s::uuid[]) AS c (content)
ON CONFLICT DO NOTHING

-- name: trail
-- Visible facts by event time; the page starts after (after_occurred, after_doc) in reading direction.
SELECT {columns}
FROM memory_visible v JOIN memory t ON t.namespace = v.namespace AND t.doc = v.doc
WHERE v.namespace = %(namespace)s
  AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(valid_at)s) AND (v.valid_to IS NULL OR v.valid_to > %(valid_at)s)
  AND (%(scopes)s::text[] IS NULL OR v.scope = ANY(%(scopes)s))
  AND (%(tags)s::text[] IS NULL OR t.tags @> %(tags)s)
  AND (%(kinds)s::text[] IS NULL OR t.kind = ANY(%(kinds)s))
  AND (%(since)s::timestamptz IS NULL OR t.occurred >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR t.occurred < %(until)s)
  AND (%(terms)s::text[] IS NULL OR (
      SELECT count(*) FROM postings p JOIN scopes s ON s.namespace = p.namespace AND s.number = p.scope
      WHERE p.namespace = v.namespace AND p.doc = v.doc AND s.scope = v.scope AND p.term = ANY(%(terms)s)
  ) = cardinality(%(terms)s::text[]))
  AND (%(after_occurred)s::timestamptz IS NULL OR
      CASE WHEN %(descending)s THEN (t.occurred, t.doc) < (%(after_occurred)s, %(after_doc)s)
           ELSE (t.occurred, t.doc) > (%(after_occurred)s, %(after_doc)s) END)
ORDER BY
    CASE WHEN %(descending)s THEN t.occurred END DESC, CASE WHEN %(descending)s THEN t.doc END DESC,
    t.occurred, t.doc
LIMIT %(limit)s

-- name: sample
-- Some visible facts of a scope, drawn by the digest of their content: the same ones every time.
SELECT {columns}
FROM memory_visible v JOIN memory t ON t.namespace = v.namespace AND t.doc = v.doc
WHERE v.namespace = %(namespace)s AND v.scope = %(scope)s
  AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(as_of)s) AND (v.valid_to IS NULL OR v.valid_to > %(as_of)s)
ORDER BY v.content, v.doc
LIMIT %(limit)s

-- name: by_doc
-- Facts by document number.
SELECT {columns} FROM memory t WHERE t.namespace = %(namespace)s AND t.doc = ANY(%(docs)s)
