-- Forgets what was counted of closed rows; searches of the schema before look for hidden rows themselves.
DROP TABLE memory_closed, memory_timed;
DROP INDEX postings_closed_idx;
ALTER TABLE postings
    DROP CONSTRAINT postings_pkey,
    DROP COLUMN closer,
    DROP COLUMN closed_before,
    ADD CONSTRAINT postings_pkey PRIMARY KEY (namespace, term, scope, doc) INCLUDE (tf, length, docs_before);
REVOKE UPDATE ON postings FROM brain_app;
CREATE INDEX memory_visible_mutable_idx ON memory_visible (namespace, scope, doc)
    WHERE known_to IS NOT NULL OR valid_to IS NOT NULL OR valid_from > known_from;
