-- Removes the seven layers and everything derived from them. The role stays: other databases may use it.
DROP TABLE IF EXISTS calibrations, embedding_models, embeddings_pending, embeddings, postings, memory_visible, records_visible, memory, records,
    friction, threads, wiki, pins, constraints, scopes, namespaces;
DROP FUNCTION IF EXISTS brain_begin_write(text, text, text), brain_begin_read(text, timestamptz), brain_lock_key(text),
    brain_clock(), only_close(), never_change();
