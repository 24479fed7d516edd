Rows that left the sight of the present: counting them as they are written.

-- name: add_timed
-- Notes rows that come or go with the passage of time.
INSERT INTO memory_timed (namespace, scope, doc, length)
SELECT %(namespace)s, t.scope, t.doc, t.length
FROM unnest(%(docs)s::bigint[], %(scopes)s::text[], %(lengths)s::int[]) AS t (doc, scope, length)
ON CONFLICT DO NOTHING

-- name: counted
-- Which of some rows are closed already, or are looked at one by one.
SELECT c.doc FROM memory_closed c WHERE c.namespace = %(namespace)s AND c.doc = ANY(%(docs)s)
UNION ALL
SELECT t.doc FROM memory_timed t JOIN memory m ON m.namespace = t.namespace AND m.scope = t.scope AND m.doc = t.doc
WHERE t.namespace = %(namespace)s AND m.doc = ANY(%(docs)s)

-- name: closed_totals
-- How many rows of a scope were closed so far, and the sum of their lengths.
SELECT docs_before + 1 AS docs, terms_before + length AS terms
FROM memory_closed
WHERE namespace = %(namespace)s AND scope = %(scope)s
ORDER BY closer DESC, doc DESC LIMIT 1

-- name: closed_term_totals
-- How many closed rows of a scope contain each term so far.
SELECT q.term, p.closed_before + 1 AS docs
FROM unnest(%(terms)s::text[]) AS q (term)
CROSS JOIN LATERAL (
    SELECT closed_before FROM postings
    WHERE namespace = %(namespace)s AND term = q.term AND scope = %(number)s AND closer IS NOT NULL
    ORDER BY closer DESC, doc DESC LIMIT 1
) p

-- name: add_closed
-- Counts rows of one scope as closed.
INSERT INTO memory_closed (namespace, scope, closer, doc, length, docs_before, terms_before)
SELECT %(namespace)s, %(scope)s, c.*
FROM unnest(%(closers)s::bigint[], %(docs)s::bigint[], %(lengths)s::int[], %(docs_before)s::bigint[],
    %(terms_before)s::bigint[]) AS c

-- name: close_postings
-- Says of the postings of closed rows which row closed them.
UPDATE postings p SET closer = c.closer, closed_before = c.before
FROM unnest(%(terms)s::text[], %(docs)s::bigint[], %(closers)s::bigint[], %(befores)s::int[]) AS c (term, doc, closer, before)
WHERE p.namespace = %(namespace)s AND p.term = c.term AND p.scope = %(number)s AND p.doc = c.doc

-- name: mismatched
-- Rows that are counted as closed although the present sees them, or not although it never will again, and closings
-- that are counted out of order.
SELECT m.doc
FROM memory m LEFT JOIN memory_closed c ON c.namespace = m.namespace AND c.doc = m.doc
WHERE m.namespace = %(namespace)s AND NOT m.tombstone
  AND NOT EXISTS (SELECT FROM memory_timed t WHERE t.namespace = m.namespace AND t.scope = m.scope AND t.doc = m.doc)
  AND (c.doc IS NOT NULL) = EXISTS (
      SELECT FROM memory_visible v
      WHERE v.namespace = m.namespace AND v.doc = m.doc AND v.known_to IS NULL
        AND (v.valid_to IS NULL OR v.valid_to > greatest(v.known_from, v.valid_from))
  )
UNION
SELECT c.doc FROM (
    SELECT c.doc, c.docs_before, row_number() OVER (PARTITION BY c.scope ORDER BY c.closer, c.doc) - 1 AS docs
    FROM memory_closed c WHERE c.namespace = %(namespace)s
) c
WHERE c.docs_before <> c.docs
ORDER BY doc
