Where rows may belong: lanes that a human registered and projects that were written to.

-- name: known
-- The registered scopes with their numbers, in the order in which they were registered.
SELECT scope, number FROM scopes WHERE namespace = %(namespace)s ORDER BY number

-- name: register
-- Adds a scope under the next number; the namespace's write lock keeps numbers apart.
INSERT INTO scopes (namespace, scope, number, known_from, recorded_at, client)
SELECT %(namespace)s, %(scope)s, coalesce(max(number), -1) + 1, %(as_of)s, %(as_of)s, %(client)s
FROM scopes WHERE namespace = %(namespace)s

-- name: overview
-- The registered scopes with the number of facts that are visible in each now.
SELECT s.scope, s.known_from, s.client,
    (SELECT count(*) FROM memory_visible v
     WHERE v.namespace = s.namespace AND v.scope = s.scope AND v.known_from <= %(as_of)s
       AND (v.known_to IS NULL OR v.known_to > %(as_of)s)
       AND (v.valid_from IS NULL OR v.valid_from <= %(as_of)s)
       AND (v.valid_to IS NULL OR v.valid_to > %(as_of)s)) AS facts
FROM scopes s
WHERE s.namespace = %(namespace)s AND s.known_from <= %(as_of)s
ORDER BY s.number
