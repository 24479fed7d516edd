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
