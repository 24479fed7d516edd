Hard data: looking up by identity, reading by filters, and figures by kind and unit.

-- name: newest_by_identity
-- The newest version of the record with this kind, title and date, visible or not.
SELECT {columns} FROM records t
WHERE t.namespace = %(namespace)s AND t.kind = %(kind)s AND t.title_key = %(title_key)s AND t.date = %(date)s
ORDER BY t.version DESC LIMIT 1

-- name: matching
-- Visible records by date, narrowed by scope, kind, title and period.
SELECT {columns} {visible}
  AND (%(scopes)s::text[] IS NULL OR t.scope = ANY(%(scopes)s))
  AND (%(kind)s::text IS NULL OR t.kind = %(kind)s)
  AND (%(title_key)s::text IS NULL OR strpos(t.title_key, %(title_key)s) > 0)
  AND (%(since)s::date IS NULL OR t.date >= %(since)s)
  AND (%(until)s::date IS NULL OR t.date < %(until)s)
ORDER BY t.date, t.kind, t.title_key, t.id
LIMIT %(limit)s OFFSET %(offset)s

-- name: figures
-- Count, sum, least and greatest value for each kind and unit of the same rows; units are never mixed.
SELECT t.kind, t.unit, count(*) AS rows, count(t.value) AS values, sum(t.value) AS sum, min(t.value) AS min,
    max(t.value) AS max {visible}
  AND (%(scopes)s::text[] IS NULL OR t.scope = ANY(%(scopes)s))
  AND (%(kind)s::text IS NULL OR t.kind = %(kind)s)
  AND (%(title_key)s::text IS NULL OR strpos(t.title_key, %(title_key)s) > 0)
  AND (%(since)s::date IS NULL OR t.date >= %(since)s)
  AND (%(until)s::date IS NULL OR t.date < %(until)s)
GROUP BY t.kind, t.unit
ORDER BY t.kind, t.unit
