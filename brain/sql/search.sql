The memory layer's search legs. Visibility comes first: statistics and candidates are taken from the visible rows only.

The words leg has two plans with the same answer. The general one scans the visible rows. The other takes what was
written up to the instant as a prefix of the postings, in which few rows are hidden, and reads counts instead of
counting. Sums run over integers in units of 2^-40, so that no plan and no order of rows changes a bit of a score.

-- name: visible
-- The rows of the asked scopes at the point (as_of, valid_at), read from one index.
SELECT v.doc, v.length, v.content
FROM memory_visible v
WHERE v.namespace = %(namespace)s
  AND v.scope = ANY(%(scopes)s)
  AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(valid_at)s)
  AND (v.valid_to IS NULL OR v.valid_to > %(valid_at)s)

-- name: visible_filtered
-- The same, narrowed by kind, tags and the period of the event.
SELECT v.doc, v.length, v.content
FROM memory_visible v
JOIN memory m ON m.namespace = v.namespace AND m.doc = v.doc
WHERE v.namespace = %(namespace)s
  AND v.scope = ANY(%(scopes)s)
  AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
  AND (v.valid_from IS NULL OR v.valid_from <= %(valid_at)s)
  AND (v.valid_to IS NULL OR v.valid_to > %(valid_at)s)
  AND (%(kinds)s::text[] IS NULL OR m.kind = ANY(%(kinds)s))
  AND (%(tags)s::text[] IS NULL OR m.tags @> %(tags)s)
  AND (%(since)s::timestamptz IS NULL OR m.occurred >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR m.occurred < %(until)s)

-- name: prefix
-- The last row written by as_of; whether a row written later asserts to have been known by then; and, unless there are
-- more than most, the earlier rows of the asked scopes that are hidden now though they were visible once. OFFSET 0 keeps
-- both conditions look-ups: as joins they would read every row.
WITH prefix AS MATERIALIZED (
    SELECT coalesce((
        SELECT m.doc FROM memory m
        WHERE m.namespace = %(namespace)s AND m.recorded_at <= %(as_of)s
        ORDER BY m.recorded_at DESC, m.doc DESC LIMIT 1
    ), 0) AS last
),
mutable AS MATERIALIZED (
    SELECT v.doc, v.scope, v.length
    FROM memory_visible v
    WHERE v.namespace = %(namespace)s AND v.scope = ANY(%(scopes)s)
      AND (v.known_to IS NOT NULL OR v.valid_to IS NOT NULL OR v.valid_from > v.known_from)
    LIMIT %(most)s + 1
),
hidden AS (
    SELECT DISTINCT c.doc, c.scope, c.length
    FROM mutable c CROSS JOIN prefix
    WHERE c.doc <= prefix.last AND NOT EXISTS (
        SELECT FROM memory_visible v
        WHERE v.namespace = %(namespace)s AND v.doc = c.doc
          AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
          AND (v.valid_from IS NULL OR v.valid_from <= %(as_of)s) AND (v.valid_to IS NULL OR v.valid_to > %(as_of)s)
        OFFSET 0
    )
)
SELECT
    (SELECT last FROM prefix) AS last,
    EXISTS (
        SELECT FROM memory m
        WHERE m.namespace = %(namespace)s AND m.known_from < m.recorded_at
          AND m.recorded_at > %(as_of)s AND m.known_from <= %(as_of)s
        ORDER BY m.recorded_at LIMIT 1 OFFSET 0
    ) AS asserted_past,
    (SELECT count(*) FROM mutable) AS mutable,
    coalesce(array_agg(h.doc ORDER BY h.doc), '{}') AS docs,
    coalesce(array_agg(s.number ORDER BY h.doc), '{}') AS numbers,
    coalesce(sum(h.length), 0)::bigint AS length
FROM hidden h JOIN scopes s ON s.namespace = %(namespace)s AND s.scope = h.scope

-- name: passing
-- What both plans return of their scored rows. Where no term is rare, a row must contain all of them, at least two, and
-- such rows must be few.
passing AS (
    SELECT s.doc, s.score, s.covered / s.total AS coverage
    FROM (
        SELECT s.*, count(*) FILTER (WHERE s.terms = cardinality(%(terms)s::text[])) OVER () AS joint FROM scored s
    ) s
    WHERE s.essential AND s.covered >= %(floor)s * s.total
      AND (s.rare OR (
          s.terms = cardinality(%(terms)s::text[]) AND s.terms >= 2
          AND s.joint <= greatest(2, %(ubiquitous)s::float8 * s.rows)
      ))
    ORDER BY s.score DESC, s.doc
    LIMIT %(depth)s
)

-- name: weighed
-- What a term weighs: its idf when a row contains it; its mass in the query, where a name that no row contains weighs
-- more; whether it is rare enough to be evidence; and whether a row without this and every weightier term can pass.
w.term, w.df::float8 AS df, w.idf,
    w.idf * CASE WHEN w.df = 0 AND q.name THEN %(unknown_name)s::float8 ELSE 1 END AS mass,
    {rare} AS rare,
    (sum((w.idf * 1099511627776)::bigint) OVER (ORDER BY w.idf, w.term))::float8
        >= %(floor)s::float8
            * (sum((w.idf * CASE WHEN w.df = 0 AND q.name THEN %(unknown_name)s::float8 ELSE 1 END
                * 1099511627776)::bigint) OVER ())::float8
        AND ({rare} OR NOT bool_or(w.df > 0 AND {rare}) OVER ()) AS essential

-- name: rare
-- Whether few enough rows contain a term that a row may stand on it.
(NOT %(guarded)s OR o.rows < %(small)s OR w.df <= greatest(2, %(ubiquitous)s::float8 * o.rows))

-- name: prefix_weights
-- Rows, average length and the weight of each term, from running counts less the hidden rows.
WITH corpus AS MATERIALIZED (
    SELECT coalesce(sum(t.docs), 0)::float8 - cardinality(%(hidden)s::bigint[]) AS rows,
        coalesce(sum(t.terms), 0)::float8 - %(hidden_length)s AS terms
    FROM unnest(%(scopes)s::text[]) AS n (scope)
    CROSS JOIN LATERAL (
        SELECT m.docs_before + (NOT m.tombstone)::int AS docs,
            m.terms_before + CASE WHEN m.tombstone THEN 0 ELSE m.length END AS terms
        FROM memory m
        WHERE m.namespace = %(namespace)s AND m.scope = n.scope AND m.doc <= %(last)s
        ORDER BY m.doc DESC LIMIT 1
    ) t
),
counted AS (
    SELECT q.term, coalesce(sum(p.docs), 0) AS docs
    FROM unnest(%(terms)s::text[]) AS q (term)
    CROSS JOIN unnest(%(numbers)s::int[]) AS n (number)
    LEFT JOIN LATERAL (
        SELECT p.docs_before + 1 AS docs FROM postings p
        WHERE p.namespace = %(namespace)s AND p.term = q.term AND p.scope = n.number AND p.doc <= %(last)s
        ORDER BY p.doc DESC LIMIT 1
    ) p ON true
    GROUP BY q.term
),
hidden AS (
    SELECT q.term, count(*) AS docs
    FROM unnest(%(hidden)s::bigint[], %(hidden_numbers)s::int[]) AS h (doc, number)
    CROSS JOIN unnest(%(terms)s::text[]) AS q (term)
    JOIN postings p ON p.namespace = %(namespace)s AND p.term = q.term AND p.scope = h.number AND p.doc = h.doc
    GROUP BY q.term
),
weight AS (
    SELECT c.term, c.docs - coalesce(h.docs, 0) AS df,
        ln(1 + (o.rows - (c.docs - coalesce(h.docs, 0)) + 0.5) / ((c.docs - coalesce(h.docs, 0)) + 0.5)) AS idf
    FROM counted c CROSS JOIN corpus o LEFT JOIN hidden h ON h.term = c.term
)
SELECT o.rows, o.terms, {weighed}
FROM weight w CROSS JOIN corpus o JOIN unnest(%(terms)s::text[], %(names)s::bool[]) AS q (term, name) ON q.term = w.term
ORDER BY w.term

-- name: prefix_lexical
-- BM25 of the rows that contain an essential term and cover enough of the query. Terms that are not essential are
-- looked up for the rows that can still pass.
WITH weight AS MATERIALIZED (
    SELECT * FROM unnest(%(terms)s::text[], %(idfs)s::float8[], %(masses)s::float8[], %(rare)s::bool[],
        %(essential)s::bool[], %(scanned)s::bool[]) AS w (term, idf, mass, rare, essential, scanned)
),
total AS MATERIALIZED (
    SELECT sum((mass * 1099511627776)::bigint) AS mass,
        coalesce(sum((idf * 1099511627776)::bigint) FILTER (WHERE NOT scanned), 0) AS probed
    FROM weight
),
scan AS MATERIALIZED (
    SELECT p.doc, p.scope, p.term, p.tf, p.length, w.idf, w.essential, w.rare
    FROM weight w
    JOIN postings p ON p.term = w.term
    WHERE w.scanned AND p.namespace = %(namespace)s AND p.scope = ANY(%(numbers)s) AND p.doc <= %(last)s
      AND NOT EXISTS (SELECT FROM unnest(%(hidden)s::bigint[]) AS h (doc) WHERE h.doc = p.doc)
),
partial AS MATERIALIZED (
    SELECT s.doc, min(s.scope) AS scope, bool_or(s.essential) AS essential, bool_or(s.rare) AS rare,
        count(*) AS terms,
        sum((s.idf * 1099511627776)::bigint) AS covered,
        sum((s.idf * s.tf * 2.2 / (s.tf + 1.2 * (0.25 + 0.75 * s.length / %(average)s::float8))
            * 1099511627776)::bigint) AS score
    FROM scan s
    GROUP BY s.doc
),
probe AS (
    SELECT a.doc, count(*) AS terms, sum((w.idf * 1099511627776)::bigint) AS covered,
        sum((w.idf * p.tf * 2.2 / (p.tf + 1.2 * (0.25 + 0.75 * p.length / %(average)s::float8))
            * 1099511627776)::bigint) AS score
    FROM partial a CROSS JOIN total t JOIN weight w ON NOT w.scanned
    CROSS JOIN LATERAL (
        SELECT p.tf, p.length FROM postings p
        WHERE p.namespace = %(namespace)s AND p.term = w.term AND p.scope = a.scope AND p.doc = a.doc
        OFFSET 0
    ) p
    WHERE (a.covered + t.probed)::float8 >= %(floor)s::float8 * t.mass::float8
    GROUP BY a.doc
),
scored AS MATERIALIZED (
    SELECT a.doc, a.essential, a.rare, a.terms + coalesce(b.terms, 0) AS terms, %(rows)s::float8 AS rows,
        t.mass::float8 AS total, (a.covered + coalesce(b.covered, 0))::float8 AS covered,
        (a.score + coalesce(b.score, 0))::float8 / 1099511627776 AS score
    FROM partial a CROSS JOIN total t LEFT JOIN probe b ON b.doc = a.doc
),
{passing}
SELECT b.candidates, b.best_below, s.doc, s.score, s.coverage
FROM (
    SELECT count(*) FILTER (WHERE essential) AS candidates,
        max(covered / total) FILTER (WHERE essential AND covered < %(floor)s * total) AS best_below
    FROM scored
) b LEFT JOIN passing s ON true
ORDER BY s.score DESC, s.doc

-- name: lexical
-- The general plan: count, weigh and score over the visible rows.
WITH visible AS MATERIALIZED ({visible}),
corpus AS MATERIALIZED (
    SELECT count(*)::float8 AS rows, coalesce(sum(length), 0)::float8 AS terms FROM visible
),
matching AS MATERIALIZED (
    SELECT p.term, p.doc, p.tf, p.length
    FROM postings p JOIN visible v ON v.doc = p.doc
    WHERE p.namespace = %(namespace)s AND p.term = ANY(%(terms)s) AND p.scope = ANY(%(numbers)s)
),
frequency AS (
    SELECT term, count(*) AS df FROM matching GROUP BY term
),
idf AS MATERIALIZED (
    SELECT q.term, coalesce(f.df, 0) AS df,
        ln(1 + (c.rows - coalesce(f.df, 0) + 0.5) / (coalesce(f.df, 0) + 0.5)) AS idf
    FROM unnest(%(terms)s::text[]) AS q (term) CROSS JOIN corpus c LEFT JOIN frequency f ON f.term = q.term
),
weight AS MATERIALIZED (
    SELECT {weighed}
    FROM idf w CROSS JOIN corpus o
    JOIN unnest(%(terms)s::text[], %(names)s::bool[]) AS q (term, name) ON q.term = w.term
),
total AS MATERIALIZED (
    SELECT sum((mass * 1099511627776)::bigint) AS mass FROM weight
),
scored AS MATERIALIZED (
    SELECT m.doc, bool_or(w.essential) AS essential,
        bool_or(w.rare) AS rare, count(*) AS terms, min(c.rows) AS rows,
        sum((w.idf * 1099511627776)::bigint)::float8 AS covered, min(t.mass)::float8 AS total,
        sum((w.idf * m.tf * 2.2 / (m.tf + 1.2 * (0.25 + 0.75 * m.length / (c.terms / c.rows)))
            * 1099511627776)::bigint)::float8 / 1099511627776 AS score
    FROM matching m JOIN weight w ON w.term = m.term CROSS JOIN corpus c CROSS JOIN total t
    GROUP BY m.doc
),
{passing}
SELECT c.rows, c.terms, w.words, w.dfs, w.idfs, w.masses, w.rares, w.essentials, b.candidates, b.best_below, s.doc, s.score, s.coverage
FROM corpus c
CROSS JOIN (
    SELECT array_agg(term ORDER BY term) AS words, array_agg(df::float8 ORDER BY term) AS dfs,
        array_agg(idf ORDER BY term) AS idfs, array_agg(mass ORDER BY term) AS masses,
        array_agg(rare ORDER BY term) AS rares, array_agg(essential ORDER BY term) AS essentials
    FROM weight
) w
CROSS JOIN (
    SELECT count(*) FILTER (WHERE s.essential OR NOT p.found) AS candidates,
        max(s.covered / s.total) FILTER (
            WHERE (s.essential OR NOT p.found) AND s.covered < %(floor)s * s.total
        ) AS best_below
    FROM scored s CROSS JOIN (SELECT EXISTS (SELECT FROM passing) AS found) p
) b
LEFT JOIN passing s ON true
ORDER BY s.score DESC, s.doc

-- name: lexical_of
-- BM25 and coverage of named rows under given weights.
SELECT p.doc,
    sum((w.idf * p.tf * 2.2 / (p.tf + 1.2 * (0.25 + 0.75 * p.length / %(average)s::float8))
        * 1099511627776)::bigint)::float8 / 1099511627776 AS score,
    CASE WHEN bool_or(w.rare) THEN sum((w.idf * 1099511627776)::bigint)::float8
        / (SELECT sum((x * 1099511627776)::bigint) FROM unnest(%(masses)s::float8[]) AS i (x))::float8
    ELSE 0 END AS coverage
FROM unnest(%(docs)s::bigint[]) AS d (doc)
CROSS JOIN unnest(%(terms)s::text[], %(idfs)s::float8[], %(rare)s::bool[]) AS w (term, idf, rare)
JOIN postings p ON p.namespace = %(namespace)s AND p.term = w.term AND p.scope = ANY(%(numbers)s) AND p.doc = d.doc
GROUP BY p.doc
ORDER BY p.doc

-- name: vector
-- Exact cosine similarity over the visible rows that have a vector of this model. A vector without a direction gives
-- NaN, which the guard keeps out.
WITH visible AS MATERIALIZED ({visible}),
compared AS (
    SELECT v.doc, e.embedding <=> %(vector)s::vector AS distance
    FROM visible v
    JOIN embeddings e ON e.namespace = %(namespace)s AND e.model = %(model)s AND e.content = v.content
    WHERE e.embedding IS NOT NULL
)
SELECT doc, 1 - distance AS score
FROM compared
WHERE distance <> 'NaN'::float8
ORDER BY distance, doc
LIMIT %(depth)s

-- name: vector_each
-- The same, looking the vector of each row up: for some of a brain's rows, whatever the planner believes of their number.
WITH visible AS MATERIALIZED ({visible}),
compared AS (
    SELECT v.doc, e.embedding <=> %(vector)s::vector AS distance
    FROM visible v
    CROSS JOIN LATERAL (
        SELECT e.embedding FROM embeddings e
        WHERE e.namespace = %(namespace)s AND e.model = %(model)s AND e.content = v.content
        OFFSET 0
    ) e
    WHERE e.embedding IS NOT NULL
)
SELECT doc, 1 - distance AS score
FROM compared
WHERE distance <> 'NaN'::float8
ORDER BY distance, doc
LIMIT %(depth)s

-- name: nearest
-- The same by the model's approximate index: rows come in order of half-precision distance until enough are visible,
-- and are compared again exactly.
WITH found AS MATERIALIZED (
    SELECT m.doc, e.embedding
    FROM embeddings e
    JOIN memory m ON m.namespace = %(namespace)s AND m.content = e.content
    JOIN memory_visible v ON v.namespace = %(namespace)s AND v.doc = m.doc
    WHERE e.namespace = %(namespace)s AND e.model = {model}
      AND v.scope = ANY(%(scopes)s)
      AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
      AND (v.valid_from IS NULL OR v.valid_from <= %(valid_at)s)
      AND (v.valid_to IS NULL OR v.valid_to > %(valid_at)s)
      AND (%(kinds)s::text[] IS NULL OR m.kind = ANY(%(kinds)s))
      AND (%(tags)s::text[] IS NULL OR m.tags @> %(tags)s)
      AND (%(since)s::timestamptz IS NULL OR m.occurred >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR m.occurred < %(until)s)
    ORDER BY (e.embedding::halfvec({width})) <=> %(vector)s::halfvec({width})
    LIMIT %(depth)s
)
SELECT doc, 1 - (embedding <=> %(vector)s::vector) AS score
FROM found
ORDER BY score DESC, doc

-- name: vector_of
-- Cosine similarity of named rows.
SELECT m.doc, 1 - (e.embedding <=> %(vector)s::vector) AS score
FROM memory m
JOIN embeddings e ON e.namespace = m.namespace AND e.model = %(model)s AND e.content = m.content
WHERE m.namespace = %(namespace)s AND m.doc = ANY(%(docs)s) AND e.embedding IS NOT NULL
ORDER BY m.doc

-- name: searched
-- How many rows are visible.
WITH visible AS MATERIALIZED ({visible})
SELECT count(*) FROM visible

-- name: without_vector
-- How many visible rows wait for their vector of this model.
WITH visible AS MATERIALIZED ({visible})
SELECT count(*)
FROM visible v CROSS JOIN LATERAL (
    SELECT FROM embeddings_pending p
    WHERE p.namespace = %(namespace)s AND p.model = %(model)s AND p.content = v.content
    OFFSET 0
) p

-- name: any_pending
-- Whether any text waits for its vector of this model.
SELECT EXISTS (SELECT FROM embeddings_pending WHERE namespace = %(namespace)s AND model = %(model)s)
