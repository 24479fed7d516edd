-- The seven layers, their clock, their derived search tables, and who may touch them.
--
-- Every table begins with the namespace: in its primary key, its unique indexes and its policy.
-- A layer row is one version. It is inserted once; afterwards only known_to may change, and only from open to closed.

CREATE EXTENSION IF NOT EXISTS vector;

-- Clock -------------------------------------------------------------------------------------------------------------

-- One brain. last_known is the newest system time handed out; it never goes back, whatever the wall clock does.
CREATE TABLE namespaces (
    namespace   text        NOT NULL,
    time_zone   text        NOT NULL DEFAULT 'UTC',
    language    text        NOT NULL DEFAULT 'english',
    last_known  timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    CONSTRAINT namespaces_pkey PRIMARY KEY (namespace),
    CONSTRAINT namespace_not_empty CHECK (namespace <> '' AND length(namespace) <= 100)
);

-- The wall clock in one place, so that tests can set it.
CREATE FUNCTION brain_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT clock_timestamp() $$;

CREATE FUNCTION brain_lock_key(ns text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT hashtextextended(ns, 431) $$;

-- Serialises the writers of one namespace until commit, so that system time grows in commit order.
-- Returns the first free instant: later than every instant that was ever handed out.
CREATE FUNCTION brain_begin_write(ns text, tz text, lang text)
    RETURNS TABLE (instant timestamptz, time_zone text, language text, created boolean) LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    brain namespaces%ROWTYPE;
BEGIN
    PERFORM pg_advisory_xact_lock(brain_lock_key(ns));
    SELECT * INTO brain FROM namespaces n WHERE n.namespace = ns;
    IF NOT FOUND THEN
        -- Readers cannot see the row below before the commit; this lock tells them what its instant is not before.
        instant := brain_clock();
        PERFORM pg_advisory_xact_lock_shared((extract(epoch FROM instant) * 1000000)::bigint);
        instant := greatest(instant, brain_clock());
        INSERT INTO namespaces VALUES (ns, tz, lang, instant, instant) RETURNING * INTO brain;
        INSERT INTO scopes
        SELECT ns, s.scope, s.number - 1, instant, instant, 'brain'
        FROM unnest(ARRAY['global', 'lane:work', 'lane:personal', 'lane:school']) WITH ORDINALITY s (scope, number);
        created := true;
    ELSE
        instant := greatest(brain_clock(), brain.last_known + interval '1 microsecond');
        created := false;
    END IF;
    time_zone := brain.time_zone;
    language := brain.language;
    RETURN NEXT;
END $$;

-- The instant that a read may call "now": everything at or before it is committed, and every later write gets a
-- later instant. While a writer is under way that is the newest committed instant, or one before the very first
-- writer's; otherwise the clock's. With wanted set, waits for writers that could still commit at or before it.
CREATE FUNCTION brain_begin_read(ns text, wanted timestamptz)
    RETURNS TABLE (instant timestamptz, time_zone text, language text) LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    reading timestamptz := brain_clock() - interval '1 microsecond';
    lock_key bigint := brain_lock_key(ns);
    brain namespaces%ROWTYPE;
    writing boolean;
    first timestamptz;
BEGIN
    -- A first writer that does not show its own lock yet takes its instant after this, and so after reading.
    SELECT true, (
        SELECT timestamptz 'epoch' + ((s.classid::bigint << 32) | s.objid::bigint) * interval '1 microsecond'
        FROM pg_locks s
        WHERE s.pid = l.pid AND s.locktype = 'advisory' AND s.mode = 'ShareLock' AND s.granted AND s.objsubid = 1
        LIMIT 1
    ) INTO writing, first
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted AND l.objsubid = 1
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.classid::bigint = (lock_key >> 32) & 4294967295 AND l.objid::bigint = lock_key & 4294967295;
    IF writing AND wanted IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(lock_key);
        reading := brain_clock() - interval '1 microsecond';
        writing := false;
    END IF;
    SELECT * INTO brain FROM namespaces n WHERE n.namespace = ns;
    IF NOT FOUND THEN
        instant := least(reading, first - interval '1 microsecond');
    ELSIF writing THEN
        instant := brain.last_known;
    ELSE
        instant := greatest(reading, brain.last_known);
    END IF;
    time_zone := brain.time_zone;
    language := brain.language;
    RETURN NEXT;
END $$;

-- Scopes ------------------------------------------------------------------------------------------------------------

-- number stands for the scope in the postings, where every byte counts.
CREATE TABLE scopes (
    namespace   text        NOT NULL,
    scope       text        NOT NULL,
    number      integer     NOT NULL,
    known_from  timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    client      text        NOT NULL,
    CONSTRAINT scopes_pkey PRIMARY KEY (namespace, scope),
    CONSTRAINT scopes_number_key UNIQUE (namespace, number),
    CONSTRAINT scope_has_a_kind CHECK (scope = 'global' OR scope ~ '^(lane|project):[^[:space:]:@]+$')
);

-- Layers rewritten in place -----------------------------------------------------------------------------------------

CREATE TABLE constraints (
    namespace   text        NOT NULL,
    id          text        NOT NULL,
    version     integer     NOT NULL,
    scope       text        NOT NULL,
    rule        text        NOT NULL,
    status      text        NOT NULL,
    said        text        NOT NULL,
    reason      text        NOT NULL,
    origin      text        NOT NULL,
    client      text        NOT NULL,
    session     text        NOT NULL,
    model       text        NOT NULL,
    known_from  timestamptz NOT NULL,
    known_to    timestamptz,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT constraints_pkey PRIMARY KEY (namespace, id, version),
    CONSTRAINT constraint_status_known CHECK (status IN ('active', 'retired')),
    CONSTRAINT constraint_said_quoted CHECK (said <> '')
);

CREATE TABLE pins (
    namespace   text        NOT NULL,
    id          text        NOT NULL,
    version     integer     NOT NULL,
    scope       text        NOT NULL,
    state       text        NOT NULL,
    next        text        NOT NULL,
    blocked_on  text        NOT NULL,
    cites       text[]      NOT NULL,
    origin      text        NOT NULL,
    client      text        NOT NULL,
    session     text        NOT NULL,
    model       text        NOT NULL,
    known_from  timestamptz NOT NULL,
    known_to    timestamptz,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT pins_pkey PRIMARY KEY (namespace, id, version)
);

CREATE TABLE wiki (
    namespace   text        NOT NULL,
    id          text        NOT NULL,
    version     integer     NOT NULL,
    scope       text        NOT NULL,
    name        text        NOT NULL,
    core        boolean     NOT NULL,
    summary     text        NOT NULL,
    body        text        NOT NULL,
    cites       text[]      NOT NULL,
    origin      text        NOT NULL,
    client      text        NOT NULL,
    session     text        NOT NULL,
    model       text        NOT NULL,
    known_from  timestamptz NOT NULL,
    known_to    timestamptz,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT wiki_pkey PRIMARY KEY (namespace, id, version)
);

CREATE TABLE threads (
    namespace    text        NOT NULL,
    id           text        NOT NULL,
    version      integer     NOT NULL,
    scope        text        NOT NULL,
    title        text        NOT NULL,
    status       text        NOT NULL,
    cadence_days integer     NOT NULL,
    note         text        NOT NULL,
    said         text        NOT NULL,
    origin       text        NOT NULL,
    client       text        NOT NULL,
    session      text        NOT NULL,
    model        text        NOT NULL,
    known_from   timestamptz NOT NULL,
    known_to     timestamptz,
    recorded_at  timestamptz NOT NULL,
    CONSTRAINT threads_pkey PRIMARY KEY (namespace, id, version),
    CONSTRAINT thread_status_known CHECK (status IN ('open', 'waiting', 'paused', 'done', 'dropped')),
    CONSTRAINT thread_cadence_in_range CHECK (cadence_days BETWEEN 1 AND 3660)
);

CREATE TABLE friction (
    namespace   text        NOT NULL,
    id          text        NOT NULL,
    version     integer     NOT NULL,
    scope       text        NOT NULL,
    happened    text        NOT NULL,
    expected    text        NOT NULL,
    category    text        NOT NULL,
    artifact    text        NOT NULL,
    status      text        NOT NULL,
    note        text        NOT NULL,
    origin      text        NOT NULL,
    client      text        NOT NULL,
    session     text        NOT NULL,
    model       text        NOT NULL,
    known_from  timestamptz NOT NULL,
    known_to    timestamptz,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT friction_pkey PRIMARY KEY (namespace, id, version),
    CONSTRAINT friction_status_known CHECK (status IN ('new', 'triaged', 'fixed', 'dismissed')),
    CONSTRAINT friction_artifact_present CHECK (artifact <> '')
);

-- Layers with valid time: append-only assertions --------------------------------------------------------------------

-- known_to of an assertion lives in its rectangles: an older assertion may still show through beside a newer one.
CREATE TABLE records (
    namespace   text        NOT NULL,
    id          text        NOT NULL,
    version     integer     NOT NULL,
    doc         bigint      GENERATED BY DEFAULT AS IDENTITY,
    scope       text        NOT NULL,
    kind        text        NOT NULL,
    title       text        NOT NULL,
    title_key   text        NOT NULL,
    date        date        NOT NULL,
    value       numeric,
    unit        text        NOT NULL,
    fields      jsonb       NOT NULL,
    source      text        NOT NULL,
    tombstone   boolean     NOT NULL,
    reason      text        NOT NULL,
    valid_from  timestamptz,
    valid_to    timestamptz,
    origin      text        NOT NULL,
    client      text        NOT NULL,
    session     text        NOT NULL,
    model       text        NOT NULL,
    known_from  timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT records_pkey PRIMARY KEY (namespace, id, version),
    CONSTRAINT records_doc_key UNIQUE (namespace, doc),
    CONSTRAINT records_identity_key UNIQUE (namespace, kind, title_key, date, version),
    CONSTRAINT record_value_finite CHECK (value IS NULL OR value NOT IN ('NaN', 'Infinity', '-Infinity')),
    CONSTRAINT record_unit_with_value CHECK (value IS NOT NULL OR unit = '')
);

CREATE TABLE memory (
    namespace    text        NOT NULL,
    id           text        NOT NULL,
    version      integer     NOT NULL,
    doc          bigint      GENERATED BY DEFAULT AS IDENTITY,
    scope        text        NOT NULL,
    key          text        NOT NULL,
    text         text        NOT NULL,
    title        text        NOT NULL,
    kind         text        NOT NULL,
    tags         text[]      NOT NULL,
    importance   smallint    NOT NULL,
    confidence   numeric(4,3) NOT NULL,
    evidence     jsonb       NOT NULL,
    supersedes   text        NOT NULL,
    trigger      text        NOT NULL,
    reference    text        NOT NULL,
    said         text        NOT NULL,
    reason       text        NOT NULL,
    tombstone    boolean     NOT NULL,
    occurred     timestamptz NOT NULL,
    valid_from   timestamptz,
    valid_to     timestamptz,
    content      uuid        NOT NULL,
    words        uuid        NOT NULL,
    length       integer     NOT NULL,
    docs_before  bigint      NOT NULL,
    terms_before bigint      NOT NULL,
    origin       text        NOT NULL,
    client       text        NOT NULL,
    session      text        NOT NULL,
    model        text        NOT NULL,
    known_from   timestamptz NOT NULL,
    recorded_at  timestamptz NOT NULL,
    CONSTRAINT memory_pkey PRIMARY KEY (namespace, id, version),
    CONSTRAINT memory_doc_key UNIQUE (namespace, doc),
    CONSTRAINT memory_key_key UNIQUE (namespace, key, version),
    CONSTRAINT memory_kind_known
        CHECK (kind IN ('fact', 'preference', 'event', 'decision', 'lesson', 'profile', 'note')),
    CONSTRAINT memory_importance_in_range CHECK (importance BETWEEN 1 AND 5),
    CONSTRAINT memory_confidence_in_range CHECK (confidence BETWEEN 0 AND 1),
    CONSTRAINT memory_trigger_known CHECK (trigger IN ('explicit', 'autonomous')),
    CONSTRAINT memory_text_not_empty CHECK (text <> '')
);
-- docs_before and terms_before count the searchable rows of the same scope written earlier, and their lengths: corpus
-- statistics as of any row are one look-up. A tombstone is not searchable.
CREATE INDEX memory_scope_doc_idx ON memory (namespace, scope, doc) INCLUDE (length, docs_before, terms_before, tombstone);
-- content and words are digests: of the folded title and text, and of the set of its words and numbers.
CREATE INDEX memory_content_idx ON memory (namespace, content);
CREATE INDEX memory_words_idx ON memory (namespace, words);
CREATE INDEX memory_asserted_past_idx ON memory (namespace, recorded_at) WHERE known_from < recorded_at;
CREATE INDEX memory_occurred_idx ON memory (namespace, scope, occurred);

-- Which assertion is visible where, in system time by valid time: at most one rectangle a key covers any point.
-- Derived from the assertions, kept up by every write, and rebuilt for a key whose past is asserted out of order.
CREATE TABLE memory_visible (
    namespace   text        NOT NULL,
    rectangle   bigint      GENERATED ALWAYS AS IDENTITY,
    id          text        NOT NULL,
    doc         bigint      NOT NULL,
    scope       text        NOT NULL,
    length      integer     NOT NULL,
    content     uuid        NOT NULL,
    known_from  timestamptz NOT NULL,
    known_to    timestamptz,
    valid_from  timestamptz,
    valid_to    timestamptz,
    CONSTRAINT memory_visible_pkey PRIMARY KEY (namespace, rectangle),
    CONSTRAINT memory_visible_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES memory (namespace, doc)
);
CREATE INDEX memory_visible_id_idx ON memory_visible (namespace, id);
CREATE INDEX memory_visible_doc_idx ON memory_visible (namespace, doc);
CREATE INDEX memory_visible_scan_idx ON memory_visible (namespace, scope, known_from)
    INCLUDE (known_to, valid_from, valid_to, doc, length, content);
-- The rows that may be hidden at some later instant; the others are visible from known_from on.
CREATE INDEX memory_visible_mutable_idx ON memory_visible (namespace, scope, doc)
    WHERE known_to IS NOT NULL OR valid_to IS NOT NULL OR valid_from > known_from;

CREATE TABLE records_visible (
    namespace   text        NOT NULL,
    rectangle   bigint      GENERATED ALWAYS AS IDENTITY,
    id          text        NOT NULL,
    doc         bigint      NOT NULL,
    scope       text        NOT NULL,
    known_from  timestamptz NOT NULL,
    known_to    timestamptz,
    valid_from  timestamptz,
    valid_to    timestamptz,
    CONSTRAINT records_visible_pkey PRIMARY KEY (namespace, rectangle),
    CONSTRAINT records_visible_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES records (namespace, doc)
);
CREATE INDEX records_visible_id_idx ON records_visible (namespace, id);
CREATE INDEX records_visible_doc_idx ON records_visible (namespace, doc);

-- Search: derived from memory ---------------------------------------------------------------------------------------

-- docs_before counts the earlier postings of the same term and scope: document frequency as of any row is one look-up.
CREATE TABLE postings (
    namespace   text     NOT NULL,
    term        text     NOT NULL,
    scope       integer  NOT NULL,
    doc         bigint   NOT NULL,
    tf          smallint NOT NULL,
    length      integer  NOT NULL,
    docs_before integer  NOT NULL,
    CONSTRAINT postings_pkey PRIMARY KEY (namespace, term, scope, doc) INCLUDE (tf, length, docs_before)
);

-- One vector a text and model. A row without a vector is a text for which the model has no usable one.
CREATE TABLE embeddings (
    namespace    text   NOT NULL,
    model        text   NOT NULL,
    content      uuid   NOT NULL,
    embedding    vector,
    CONSTRAINT embeddings_pkey PRIMARY KEY (namespace, model, content),
    CONSTRAINT embedding_norm_not_zero CHECK (embedding IS NULL OR vector_norm(embedding) > 0)
);

-- Texts that were stored while the model could not be reached; the back-fill empties it.
CREATE TABLE embeddings_pending (
    namespace    text   NOT NULL,
    model        text   NOT NULL,
    content      uuid   NOT NULL,
    CONSTRAINT embeddings_pending_pkey PRIMARY KEY (namespace, model, content)
);

-- The embedding model and text analysis that a namespace was indexed with.
CREATE TABLE embedding_models (
    namespace  text        NOT NULL,
    model      text        NOT NULL,
    dimensions integer     NOT NULL,
    analysis   integer     NOT NULL,
    active     boolean     NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT embedding_models_pkey PRIMARY KEY (namespace, model)
);
CREATE UNIQUE INDEX embedding_models_active_idx ON embedding_models (namespace) WHERE active;

-- The honesty floor that was measured on this brain; the newest one known for a model and analysis holds.
CREATE TABLE calibrations (
    namespace  text        NOT NULL,
    model      text        NOT NULL,
    analysis   integer     NOT NULL,
    floor      float8      NOT NULL,
    hits       integer     NOT NULL,
    kept       integer     NOT NULL,
    foreigners integer     NOT NULL,
    answered   integer     NOT NULL,
    client     text        NOT NULL,
    known_from timestamptz NOT NULL,
    CONSTRAINT calibrations_pkey PRIMARY KEY (namespace, model, analysis, known_from),
    CONSTRAINT calibration_floor_in_range CHECK (floor > 0 AND floor <= 2),
    CONSTRAINT calibration_counts_agree CHECK (kept BETWEEN 0 AND hits AND answered BETWEEN 0 AND foreigners)
);

-- What holds for every layer ----------------------------------------------------------------------------------------

-- A version may only be closed, and only once.
CREATE FUNCTION only_close() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.known_to IS NOT NULL OR NEW.known_to IS NULL OR NEW.known_to <= OLD.known_from
        OR to_jsonb(NEW) - 'known_to' IS DISTINCT FROM to_jsonb(OLD) - 'known_to'
    THEN
        RAISE EXCEPTION 'a version of % is never changed, only closed once', TG_TABLE_NAME
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

-- An assertion is never changed.
CREATE FUNCTION never_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an assertion in % is never changed', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

DO $$
DECLARE
    layer text;
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'brain_app') THEN
            CREATE ROLE brain_app NOLOGIN;
        END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;
    END;

    FOREACH layer IN ARRAY ARRAY['constraints', 'pins', 'wiki', 'threads', 'friction'] LOOP
        EXECUTE format('CREATE UNIQUE INDEX %I ON %I (namespace, id) WHERE known_to IS NULL', layer || '_current_idx', layer);
        EXECUTE format('CREATE TRIGGER only_close BEFORE UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION only_close()', layer);
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (known_to > known_from)', layer, layer || '_known_interval');
        EXECUTE format('GRANT SELECT, INSERT, UPDATE (known_to) ON %I TO brain_app', layer);
    END LOOP;
    FOREACH layer IN ARRAY ARRAY['memory', 'records'] LOOP
        EXECUTE format('CREATE INDEX %I ON %I (namespace, recorded_at, doc)', layer || '_recorded_idx', layer);
        EXECUTE format('CREATE TRIGGER never_change BEFORE UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION never_change()', layer);
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (valid_from < valid_to)', layer, layer || '_valid_interval');
        EXECUTE format('GRANT SELECT, INSERT ON %I TO brain_app', layer);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE (known_to), DELETE ON %I TO brain_app', layer || '_visible');
    END LOOP;
    FOREACH layer IN ARRAY ARRAY['constraints', 'records', 'pins', 'wiki', 'threads', 'memory', 'friction'] LOOP
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (version >= 1)', layer, layer || '_version_from_one');
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (origin IN (''user'', ''model'', ''import'', ''human''))',
            layer, layer || '_origin_known');
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (scope = ''global'' OR scope ~ ''^(lane|project):[^[:space:]:@]+$'')',
            layer, layer || '_scope_has_a_kind');
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (known_from >= ''1900-01-01Z'' AND known_from < ''2201-01-01Z'')',
            layer, layer || '_known_in_range');
        IF layer NOT IN ('memory', 'records') THEN
            EXECUTE format('CREATE INDEX %I ON %I (namespace, recorded_at)', layer || '_recorded_idx', layer);
        END IF;
    END LOOP;
    ALTER TABLE memory ADD CONSTRAINT memory_times_in_range CHECK (
        occurred >= '1900-01-01Z' AND occurred < '2201-01-01Z'
        AND valid_from >= '1900-01-01Z' AND valid_from < '2201-01-01Z' AND valid_to < '2201-01-01Z');
    ALTER TABLE records ADD CONSTRAINT records_times_in_range CHECK (
        date >= '1900-01-01' AND date < '2201-01-01'
        AND valid_from >= '1900-01-01Z' AND valid_from < '2201-01-01Z' AND valid_to < '2201-01-01Z');

    GRANT SELECT, INSERT ON scopes, postings, embeddings, calibrations TO brain_app;
    GRANT SELECT, INSERT, DELETE ON embeddings_pending TO brain_app;
    GRANT USAGE ON SEQUENCE memory_doc_seq, records_doc_seq TO brain_app;
    GRANT SELECT, INSERT, UPDATE (active, dimensions, analysis) ON embedding_models TO brain_app;
    GRANT SELECT, INSERT, UPDATE (last_known) ON namespaces TO brain_app;
    GRANT SELECT ON alembic_version TO brain_app;

    -- Rows are visible and writable only in the namespace that the transaction names. Unset, or set to nothing, denies.
    FOREACH layer IN ARRAY ARRAY[
        'namespaces', 'scopes', 'constraints', 'records', 'pins', 'wiki', 'threads', 'memory', 'friction',
        'memory_visible', 'records_visible', 'postings', 'embeddings', 'embeddings_pending', 'embedding_models',
        'calibrations'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', layer);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', layer);
        EXECUTE format('CREATE POLICY own_namespace ON %I USING (namespace = current_setting(''brain.namespace'', true)) '
            'WITH CHECK (namespace = current_setting(''brain.namespace'', true))', layer);
    END LOOP;
    -- The migrating role must be able to act as the application's role.
    IF NOT pg_has_role(current_user, 'brain_app', 'SET') THEN
        EXECUTE format('GRANT brain_app TO %I', current_user);
    END IF;
END $$;
