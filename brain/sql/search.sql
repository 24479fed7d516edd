The memory layer's search legs. Visibility comes first: statistics and candidates are taken from the visible rows only.

The words leg has two plans with the same answer. The general one scans the visible rows. The other takes what was
written up to the instant as a prefix of the postings, leaves out what was closed by then, and reads counts instead of
counting. Sums run over whole numbers in units of 2^-36, which double precision adds exactly, so that no plan and no
order of rows changes a bit of a score.

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

-- name: passing
-- What both plans return of their scored rows, in one pass over them: how many there are, the best coverage below the
-- floor, and the rows that can be among the best. Where no term is rare, a row must contain all of them, at least two,
-- and such rows must be few.
said AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE s.essential) AS candidates,
        max(s.covered) FILTER (WHERE s.essential AND s.covered < %(floor)s * t.mass) AS below,
        count(*) FILTER (WHERE s.terms = cardinality(%(terms)s::text[])) AS joint,
        array_agg(s.doc) FILTER ({kept}) AS docs, array_agg(s.score) FILTER ({kept}) AS scores,
        array_agg(s.covered) FILTER ({kept}) AS covered, array_agg(s.rare) FILTER ({kept}) AS rares
        {more}
    FROM scored s CROSS JOIN total t
),
passing AS (
    SELECT s.doc, s.score / 68719476736 AS score, s.covered / t.mass AS coverage
    FROM said d CROSS JOIN total t CROSS JOIN unnest(d.docs, d.scores, d.covered, d.rares) AS s (doc, score, covered, rare)
    WHERE s.rare OR d.joint <= greatest(2, %(ubiquitous)s::float8 * t.rows)
    ORDER BY s.score DESC, s.doc
    LIMIT %(depth)s
)

-- name: rarest_said
-- The same of the rows that contain the rarest term, for when none passes.
, count(*) FILTER (WHERE s.rarest) AS candidates_with_rarest,
max(s.covered) FILTER (WHERE s.rarest AND s.covered < %(floor)s * t.mass) AS below_with_rarest

-- name: kept
-- Whether a scored row passes, as far as it can be told from itself; first what keeps most rows out.
WHERE s.score >= t.least AND s.essential AND s.covered >= %(floor)s * t.mass
    AND (s.rare OR (s.terms = cardinality(%(terms)s::text[]) AND s.terms >= 2))

-- name: weighed
-- What a term weighs: its idf when a row contains it; its mass in the query, where a name that no row contains weighs
-- more; whether it is rare enough to be evidence; and whether a row without this and every weightier term can pass. Where
-- no term is rare a row must contain all of them, so that only the weightiest is needed to find it.
w.term, w.df::float8 AS df, w.idf,
    w.idf * CASE WHEN w.df = 0 AND q.name THEN %(unknown_name)s::float8 ELSE 1 END AS mass,
    {rare} AS rare,
    sum(round(w.idf * 68719476736)) OVER (ORDER BY w.idf, w.term)
        >= %(floor)s::float8
            * sum(round(w.idf * CASE WHEN w.df = 0 AND q.name THEN %(unknown_name)s::float8 ELSE 1 END
                * 68719476736)) OVER ()
        AND CASE WHEN bool_or(w.df > 0 AND {rare}) OVER () THEN {rare} ELSE {rarest} END AS essential,
    {rarest} AS rarest

-- name: rare
-- Whether few enough rows contain a term that a row may stand on it.
(NOT %(guarded)s OR o.rows < %(small)s OR w.df <= greatest(2, %(ubiquitous)s::float8 * o.rows))

-- name: rarest
-- Whether it is the rarest of the terms that any row contains.
w.term = first_value(w.term) OVER (ORDER BY w.df > 0 DESC, w.idf DESC, w.term)

-- name: gain
-- BM25 of one posting, k1 = 1.2 and b = 0.75, in units of 2^-36. t.slope is k1 * b by the average length.
round(w.idf * 151182848819.2::float8 * p.tf / (p.tf + (0.3::float8 + t.slope * p.length)))

-- name: prefix
-- What was written up to as_of: its last row, whether a later row asserts to have been known by then, the rows that time
-- alone hides (unless more than most come or go with time), the number and length of the visible rows, and the weight of
-- each term. All counts are differences of running counts. OFFSET 0 keeps conditions look-ups: as joins they would read
-- every row.
WITH prefix AS MATERIALIZED (
    SELECT coalesce((
        SELECT m.doc FROM memory m
        WHERE m.namespace = %(namespace)s AND m.recorded_at <= %(as_of)s
        ORDER BY m.recorded_at DESC, m.doc DESC LIMIT 1
    ), 0) AS last
),
timed AS MATERIALIZED (
    SELECT t.doc, t.scope, t.length
    FROM memory_timed t
    WHERE t.namespace = %(namespace)s AND t.scope = ANY(%(scopes)s)
    LIMIT %(most)s + 1
),
hidden AS MATERIALIZED (
    SELECT t.doc, t.length, s.number
    FROM timed t CROSS JOIN prefix
    JOIN unnest(%(scopes)s::text[], %(numbers)s::int[]) AS s (scope, number) ON s.scope = t.scope
    WHERE t.doc <= prefix.last AND NOT EXISTS (
        SELECT FROM memory_visible v
        WHERE v.namespace = %(namespace)s AND v.doc = t.doc
          AND v.known_from <= %(as_of)s AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
          AND (v.valid_from IS NULL OR v.valid_from <= %(as_of)s) AND (v.valid_to IS NULL OR v.valid_to > %(as_of)s)
        OFFSET 0
    ) AND NOT EXISTS (
        SELECT FROM memory_closed c
        WHERE c.namespace = %(namespace)s AND c.doc = t.doc AND c.closer <= prefix.last
        OFFSET 0
    )
),
said AS MATERIALIZED (
    SELECT (SELECT last FROM prefix) AS last,
        EXISTS (
            SELECT FROM memory m
            WHERE m.namespace = %(namespace)s AND m.known_from < m.recorded_at
              AND m.recorded_at > %(as_of)s AND m.known_from <= %(as_of)s
            ORDER BY m.recorded_at LIMIT 1 OFFSET 0
        ) AS asserted_past,
        (SELECT count(*) FROM timed) AS timed,
        coalesce(array_agg(h.doc), '{}') AS hidden, count(*) AS docs, coalesce(sum(h.length), 0)::bigint AS terms
    FROM hidden h
),
corpus AS MATERIALIZED (
    SELECT (coalesce(sum(o.docs), 0) - coalesce(sum(c.docs), 0) - min(h.docs))::float8 AS rows,
        (coalesce(sum(o.terms), 0) - coalesce(sum(c.terms), 0) - min(h.terms))::float8 AS terms
    FROM said h CROSS JOIN unnest(%(scopes)s::text[]) AS n (scope)
    LEFT JOIN LATERAL (
        SELECT m.docs_before + (NOT m.tombstone)::int AS docs,
            m.terms_before + CASE WHEN m.tombstone THEN 0 ELSE m.length END AS terms
        FROM memory m
        WHERE m.namespace = %(namespace)s AND m.scope = n.scope AND m.doc <= h.last
        ORDER BY m.doc DESC LIMIT 1
    ) o ON true
    LEFT JOIN LATERAL (
        SELECT c.docs_before + 1 AS docs, c.terms_before + c.length AS terms
        FROM memory_closed c
        WHERE c.namespace = %(namespace)s AND c.scope = n.scope AND c.closer <= h.last
        ORDER BY c.closer DESC, c.doc DESC LIMIT 1
    ) c ON true
),
counted AS MATERIALIZED (
    SELECT q.term, coalesce(sum(o.docs), 0) - coalesce(sum(c.docs), 0) - (
            SELECT count(*) FROM hidden h CROSS JOIN LATERAL (
                SELECT FROM postings p
                WHERE p.namespace = %(namespace)s AND p.term = q.term AND p.scope = h.number AND p.doc = h.doc
                OFFSET 0
            ) p
        ) AS df
    FROM said h CROSS JOIN unnest(%(terms)s::text[]) AS q (term) CROSS JOIN unnest(%(numbers)s::int[]) AS n (number)
    LEFT JOIN LATERAL (
        SELECT p.docs_before + 1 AS docs FROM postings p
        WHERE p.namespace = %(namespace)s AND p.term = q.term AND p.scope = n.number AND p.doc <= h.last
        ORDER BY p.doc DESC LIMIT 1
    ) o ON true
    LEFT JOIN LATERAL (
        SELECT p.closed_before + 1 AS docs FROM postings p
        WHERE p.namespace = %(namespace)s AND p.term = q.term AND p.scope = n.number
          AND p.closer IS NOT NULL AND p.closer <= h.last
        ORDER BY p.closer DESC, p.doc DESC LIMIT 1
    ) c ON true
    GROUP BY q.term
),
weight AS (
    SELECT c.term, c.df, ln(1 + (o.rows - c.df + 0.5) / (c.df + 0.5)) AS idf FROM counted c CROSS JOIN corpus o
)
SELECT h.last, h.asserted_past, h.timed, h.hidden, o.rows, o.terms, {weighed}
FROM weight w CROSS JOIN corpus o CROSS JOIN said h
JOIN unnest(%(terms)s::text[], %(names)s::bool[]) AS q (term, name) ON q.term = w.term
ORDER BY w.term

-- name: given
-- The weights that an earlier statement returned.
weight AS MATERIALIZED (
    SELECT w.*, round(idf * 68719476736) AS units, 1 + CASE WHEN essential THEN 65536 ELSE 0 END::float8
        + CASE WHEN rare THEN 4294967296 ELSE 0 END::float8 AS code
    FROM unnest(%(terms)s::text[], %(idfs)s::float8[], %(masses)s::float8[], %(rare)s::bool[],
        %(essential)s::bool[], %(scanned)s::bool[]) AS w (term, idf, mass, rare, essential, scanned)
),
total AS MATERIALIZED (
    SELECT sum(round(mass * 68719476736)) AS mass, %(rows)s::float8 AS rows, %(slope)s::float8 AS slope,
        coalesce(sum(units) FILTER (WHERE NOT scanned), 0) AS probed, %(least)s::float8 AS least
    FROM weight
)

-- name: scanned
-- The postings of the terms that are read whole. One sum counts the terms of a row, those that are essential and those
-- that are rare: a query has fewer than 65536.
FROM total t CROSS JOIN weight w CROSS JOIN LATERAL (
    SELECT p.doc, p.scope, p.tf::float8 AS tf, p.length FROM postings p
    WHERE p.namespace = %(namespace)s AND p.term = w.term AND p.scope = ANY(%(numbers)s) AND p.doc <= %(last)s
      AND p.doc > %(first)s AND (p.closer IS NULL OR p.closer > %(last)s)
    OFFSET 0
) p
WHERE w.scanned AND p.doc NOT IN (SELECT unnest(%(hidden)s::bigint[]))
GROUP BY p.doc

-- name: returned
-- The end of both statements: what was scored in one pass, and the rows that pass.
{passing}
SELECT d.candidates, d.below / t.mass AS best_below, s.doc, s.score, s.coverage
FROM said d CROSS JOIN total t LEFT JOIN passing s ON true
ORDER BY s.score DESC, s.doc

-- name: prefix_lexical
-- BM25 of the rows that contain an essential term and cover enough of the query, where every term is read whole.
WITH {given},
scored AS (
    SELECT s.doc, s.code & 65535 AS terms, s.code & 4294901760 > 0 AS essential, s.code >= 4294967296 AS rare,
        s.covered, s.score
    FROM (
        SELECT p.doc, sum(w.code)::bigint AS code, sum(w.units) AS covered, sum({gain}) AS score
        {scanned}
        OFFSET 0
    ) s
),
{returned}

-- name: prefix_probing
-- The same where some terms are looked up for the rows that can still pass with them.
WITH {given},
partial AS MATERIALIZED (
    SELECT p.doc, min(p.scope) AS scope, sum(w.code)::bigint AS code, sum(w.units) AS covered, sum({gain}) AS score
    {scanned}
),
scored AS (
    SELECT a.doc, (a.code & 65535) + b.terms AS terms, a.code & 4294901760 > 0 AS essential, a.code >= 4294967296 AS rare,
        a.covered + b.covered AS covered, a.score + b.score AS score
    FROM partial a CROSS JOIN total t CROSS JOIN LATERAL (
        SELECT count(*) AS terms, coalesce(sum(w.units), 0) AS covered, coalesce(sum({gain}), 0) AS score
        FROM weight w CROSS JOIN LATERAL (
            SELECT p.tf::float8 AS tf, p.length FROM postings p
            WHERE p.namespace = %(namespace)s AND p.term = w.term AND p.scope = a.scope AND p.doc = a.doc
            OFFSET 0
        ) p
        WHERE NOT w.scanned AND a.covered + t.probed >= %(floor)s::float8 * t.mass
        OFFSET 0
    ) b
),
{returned}

-- name: lexical
-- The general plan: count, weigh and score over the visible rows.
WITH visible AS MATERIALIZED ({visible}),
corpus AS MATERIALIZED (
    SELECT count(*)::float8 AS rows, coalesce(sum(length), 0)::float8 AS terms,
        0.9::float8 / nullif(coalesce(sum(length), 0)::float8 / nullif(count(*), 0), 0) AS slope
    FROM visible
),
matching AS MATERIALIZED (
    SELECT p.term, p.doc, p.tf::float8 AS tf, p.length
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
    SELECT sum(round(w.mass * 68719476736)) AS mass, min(c.rows) AS rows, min(c.slope) AS slope, 0::float8 AS least
    FROM weight w CROSS JOIN corpus c
),
scored AS (
    SELECT p.doc, bool_or(w.essential) AS essential, bool_or(w.rare) AS rare, bool_or(w.rarest) AS rarest, count(*) AS terms,
        sum(round(w.idf * 68719476736)) AS covered, sum({gain}) AS score
    FROM matching p JOIN weight w ON w.term = p.term CROSS JOIN total t
    GROUP BY p.doc
),
{passing_and_rarest}
SELECT c.rows, c.terms, w.words, w.dfs, w.idfs, w.masses, w.rares, w.essentials, w.rarests,
    CASE WHEN f.found THEN d.candidates ELSE d.candidates_with_rarest END AS candidates,
    CASE WHEN f.found THEN d.below ELSE d.below_with_rarest END / t.mass AS best_below, s.doc, s.score, s.coverage
FROM corpus c CROSS JOIN total t CROSS JOIN said d
CROSS JOIN (SELECT EXISTS (SELECT FROM passing) AS found) f
CROSS JOIN (
    SELECT array_agg(term ORDER BY term) AS words, array_agg(df::float8 ORDER BY term) AS dfs,
        array_agg(idf ORDER BY term) AS idfs, array_agg(mass ORDER BY term) AS masses,
        array_agg(rare ORDER BY term) AS rares, array_agg(essential ORDER BY term) AS essentials,
        array_agg(rarest ORDER BY term) AS rarests
    FROM weight
) w
LEFT JOIN passing s ON true
ORDER BY s.score DESC, s.doc

-- name: vector
-- Exact cosine similarity over the visible rows that have a vector of this model. A vector without a direction gives
-- NaN, which the guard keeps out. OFFSET 0 has each distance worked out once.
WITH visible AS MATERIALIZED ({visible}),
compared AS (
    SELECT v.doc, e.embedding <=> %(vector)s::vector AS distance
    FROM visible v
    JOIN embeddings e ON e.namespace = %(namespace)s AND e.model = %(model)s AND e.content = v.content
    WHERE e.embedding IS NOT NULL
    OFFSET 0
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
    OFFSET 0
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

-- name: details
-- What ranking needs of some visible rows, and what each leg says of those that only the other one found. A term that
-- no row holds stands in no posting, so that a coverage without a rare term counts as none.
WITH total AS MATERIALIZED (
    SELECT sum(round(x * 68719476736)) AS mass, %(slope)s::float8 AS slope FROM unnest(%(masses)s::float8[]) AS i (x)
),
unread AS MATERIALIZED (
    SELECT p.term, p.doc, p.tf::float8 AS tf, p.length FROM postings p
    WHERE p.namespace = %(namespace)s AND p.term = ANY(%(terms)s) AND p.scope = ANY(%(numbers)s)
      AND p.doc = ANY(%(unread)s::bigint[])
),
said AS MATERIALIZED (
    SELECT p.doc, sum({gain}) / 68719476736 AS score,
        CASE WHEN bool_or(w.rare) THEN sum(round(w.idf * 68719476736)) / min(t.mass) ELSE 0 END AS coverage
    FROM unread p
    JOIN unnest(%(terms)s::text[], %(idfs)s::float8[], %(rare)s::bool[]) AS w (term, idf, rare) ON w.term = p.term
    CROSS JOIN total t
    GROUP BY p.doc
)
SELECT d.doc, m.key, m.kind, m.importance, m.confidence, m.occurred, m.length, e.cosine, w.score, w.coverage
FROM unnest(%(docs)s::bigint[]) AS d (doc)
CROSS JOIN LATERAL (
    SELECT * FROM memory m WHERE m.namespace = %(namespace)s AND m.doc = d.doc OFFSET 0
) m
LEFT JOIN LATERAL (
    SELECT 1 - (e.embedding <=> %(vector)s::vector) AS cosine
    FROM embeddings e
    WHERE d.doc = ANY(%(unseen)s::bigint[]) AND e.namespace = %(namespace)s AND e.model = %(model)s
      AND e.content = m.content AND e.embedding IS NOT NULL
    OFFSET 0
) e ON true
LEFT JOIN said w ON w.doc = d.doc
ORDER BY d.doc

-- name: searched
-- How many rows are visible.
WITH visible AS MATERIALIZED ({visible})
SELECT count(*) FROM visible

-- name: without_vector
-- How many visible rows wait for their vector of this model: what waits is looked up, for it is mostly little.
WITH waiting AS MATERIALIZED (
    SELECT m.doc FROM embeddings_pending p CROSS JOIN LATERAL (
        SELECT m.doc FROM memory m WHERE m.namespace = %(namespace)s AND m.content = p.content
        OFFSET 0
    ) m
    WHERE p.namespace = %(namespace)s AND p.model = %(model)s
)
SELECT count(*)
FROM waiting w CROSS JOIN LATERAL (
    SELECT FROM ({visible}) v WHERE v.doc = w.doc
    OFFSET 0
) v
