-- Written by `make schema` from the migrations, which are what counts. A test keeps it equal to them.

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';

CREATE FUNCTION public.brain_begin_read(ns text, wanted timestamp with time zone) RETURNS TABLE(instant timestamp with time zone, time_zone text, language text)
    LANGUAGE plpgsql
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

CREATE FUNCTION public.brain_begin_write(ns text, tz text, lang text) RETURNS TABLE(instant timestamp with time zone, time_zone text, language text, created boolean)
    LANGUAGE plpgsql
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

CREATE FUNCTION public.brain_clock() RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$ SELECT clock_timestamp() $$;

CREATE FUNCTION public.brain_lock_key(ns text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT hashtextextended(ns, 431) $$;

CREATE FUNCTION public.never_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'an assertion in % is never changed', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION public.only_close() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.known_to IS NOT NULL OR NEW.known_to IS NULL OR NEW.known_to <= OLD.known_from
        OR to_jsonb(NEW) - 'known_to' IS DISTINCT FROM to_jsonb(OLD) - 'known_to'
    THEN
        RAISE EXCEPTION 'a version of % is never changed, only closed once', TG_TABLE_NAME
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TABLE public.calibrations (
    namespace text NOT NULL,
    model text NOT NULL,
    analysis integer NOT NULL,
    floor double precision NOT NULL,
    hits integer NOT NULL,
    kept integer NOT NULL,
    foreigners integer NOT NULL,
    answered integer NOT NULL,
    client text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    CONSTRAINT calibration_counts_agree CHECK ((((kept >= 0) AND (kept <= hits)) AND ((answered >= 0) AND (answered <= foreigners)))),
    CONSTRAINT calibration_floor_in_range CHECK (((floor > (0)::double precision) AND (floor <= (2)::double precision)))
);

ALTER TABLE ONLY public.calibrations FORCE ROW LEVEL SECURITY;

CREATE TABLE public.constraints (
    namespace text NOT NULL,
    id text NOT NULL,
    version integer NOT NULL,
    scope text NOT NULL,
    rule text NOT NULL,
    status text NOT NULL,
    said text NOT NULL,
    reason text NOT NULL,
    origin text NOT NULL,
    client text NOT NULL,
    session text NOT NULL,
    model text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    known_to timestamp with time zone,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT constraint_said_quoted CHECK ((said <> ''::text)),
    CONSTRAINT constraint_status_known CHECK ((status = ANY (ARRAY['active'::text, 'retired'::text]))),
    CONSTRAINT constraints_known_in_range CHECK (((known_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (known_from < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT constraints_known_interval CHECK ((known_to > known_from)),
    CONSTRAINT constraints_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'model'::text, 'import'::text, 'human'::text]))),
    CONSTRAINT constraints_scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text))),
    CONSTRAINT constraints_version_from_one CHECK ((version >= 1))
);

ALTER TABLE ONLY public.constraints FORCE ROW LEVEL SECURITY;

CREATE TABLE public.embedding_models (
    namespace text NOT NULL,
    model text NOT NULL,
    dimensions integer NOT NULL,
    analysis integer NOT NULL,
    active boolean NOT NULL,
    created_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY public.embedding_models FORCE ROW LEVEL SECURITY;

CREATE TABLE public.embeddings (
    namespace text NOT NULL,
    model text NOT NULL,
    content uuid NOT NULL,
    embedding public.vector,
    CONSTRAINT embedding_norm_not_zero CHECK (((embedding IS NULL) OR (public.vector_norm(embedding) > (0)::double precision)))
);

ALTER TABLE ONLY public.embeddings FORCE ROW LEVEL SECURITY;

CREATE TABLE public.embeddings_pending (
    namespace text NOT NULL,
    model text NOT NULL,
    content uuid NOT NULL
);

ALTER TABLE ONLY public.embeddings_pending FORCE ROW LEVEL SECURITY;

CREATE TABLE public.friction (
    namespace text NOT NULL,
    id text NOT NULL,
    version integer NOT NULL,
    scope text NOT NULL,
    happened text NOT NULL,
    expected text NOT NULL,
    category text NOT NULL,
    artifact text NOT NULL,
    status text NOT NULL,
    note text NOT NULL,
    origin text NOT NULL,
    client text NOT NULL,
    session text NOT NULL,
    model text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    known_to timestamp with time zone,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT friction_artifact_present CHECK ((artifact <> ''::text)),
    CONSTRAINT friction_known_in_range CHECK (((known_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (known_from < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT friction_known_interval CHECK ((known_to > known_from)),
    CONSTRAINT friction_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'model'::text, 'import'::text, 'human'::text]))),
    CONSTRAINT friction_scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text))),
    CONSTRAINT friction_status_known CHECK ((status = ANY (ARRAY['new'::text, 'triaged'::text, 'fixed'::text, 'dismissed'::text]))),
    CONSTRAINT friction_version_from_one CHECK ((version >= 1))
);

ALTER TABLE ONLY public.friction FORCE ROW LEVEL SECURITY;

CREATE TABLE public.memory (
    namespace text NOT NULL,
    id text NOT NULL,
    version integer NOT NULL,
    doc bigint NOT NULL,
    scope text NOT NULL,
    key text NOT NULL,
    text text NOT NULL,
    title text NOT NULL,
    kind text NOT NULL,
    tags text[] NOT NULL,
    importance smallint NOT NULL,
    confidence numeric(4,3) NOT NULL,
    evidence jsonb NOT NULL,
    supersedes text NOT NULL,
    trigger text NOT NULL,
    reference text NOT NULL,
    said text NOT NULL,
    reason text NOT NULL,
    tombstone boolean NOT NULL,
    occurred timestamp with time zone NOT NULL,
    valid_from timestamp with time zone,
    valid_to timestamp with time zone,
    content uuid NOT NULL,
    words uuid NOT NULL,
    length integer NOT NULL,
    docs_before bigint NOT NULL,
    terms_before bigint NOT NULL,
    origin text NOT NULL,
    client text NOT NULL,
    session text NOT NULL,
    model text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT memory_confidence_in_range CHECK (((confidence >= (0)::numeric) AND (confidence <= (1)::numeric))),
    CONSTRAINT memory_importance_in_range CHECK (((importance >= 1) AND (importance <= 5))),
    CONSTRAINT memory_kind_known CHECK ((kind = ANY (ARRAY['fact'::text, 'preference'::text, 'event'::text, 'decision'::text, 'lesson'::text, 'profile'::text, 'note'::text]))),
    CONSTRAINT memory_known_in_range CHECK (((known_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (known_from < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT memory_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'model'::text, 'import'::text, 'human'::text]))),
    CONSTRAINT memory_scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text))),
    CONSTRAINT memory_text_not_empty CHECK ((text <> ''::text)),
    CONSTRAINT memory_times_in_range CHECK (((occurred >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (occurred < '2201-01-01 00:00:00+00'::timestamp with time zone) AND (valid_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (valid_from < '2201-01-01 00:00:00+00'::timestamp with time zone) AND (valid_to < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT memory_trigger_known CHECK ((trigger = ANY (ARRAY['explicit'::text, 'autonomous'::text]))),
    CONSTRAINT memory_valid_interval CHECK ((valid_from < valid_to)),
    CONSTRAINT memory_version_from_one CHECK ((version >= 1))
);

ALTER TABLE ONLY public.memory FORCE ROW LEVEL SECURITY;

CREATE TABLE public.memory_closed (
    namespace text NOT NULL,
    scope text NOT NULL,
    closer bigint NOT NULL,
    doc bigint NOT NULL,
    length integer NOT NULL,
    docs_before bigint NOT NULL,
    terms_before bigint NOT NULL,
    CONSTRAINT memory_closed_by_later CHECK ((closer >= doc))
);

ALTER TABLE ONLY public.memory_closed FORCE ROW LEVEL SECURITY;

ALTER TABLE public.memory ALTER COLUMN doc ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.memory_doc_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.memory_timed (
    namespace text NOT NULL,
    scope text NOT NULL,
    doc bigint NOT NULL,
    length integer NOT NULL
);

ALTER TABLE ONLY public.memory_timed FORCE ROW LEVEL SECURITY;

CREATE TABLE public.memory_visible (
    namespace text NOT NULL,
    rectangle bigint NOT NULL,
    id text NOT NULL,
    doc bigint NOT NULL,
    scope text NOT NULL,
    length integer NOT NULL,
    content uuid NOT NULL,
    known_from timestamp with time zone NOT NULL,
    known_to timestamp with time zone,
    valid_from timestamp with time zone,
    valid_to timestamp with time zone
);

ALTER TABLE ONLY public.memory_visible FORCE ROW LEVEL SECURITY;

ALTER TABLE public.memory_visible ALTER COLUMN rectangle ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.memory_visible_rectangle_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.namespaces (
    namespace text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    language text DEFAULT 'english'::text NOT NULL,
    last_known timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT namespace_not_empty CHECK (((namespace <> ''::text) AND (length(namespace) <= 100)))
);

ALTER TABLE ONLY public.namespaces FORCE ROW LEVEL SECURITY;

CREATE TABLE public.pins (
    namespace text NOT NULL,
    id text NOT NULL,
    version integer NOT NULL,
    scope text NOT NULL,
    state text NOT NULL,
    next text NOT NULL,
    blocked_on text NOT NULL,
    cites text[] NOT NULL,
    origin text NOT NULL,
    client text NOT NULL,
    session text NOT NULL,
    model text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    known_to timestamp with time zone,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT pins_known_in_range CHECK (((known_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (known_from < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT pins_known_interval CHECK ((known_to > known_from)),
    CONSTRAINT pins_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'model'::text, 'import'::text, 'human'::text]))),
    CONSTRAINT pins_scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text))),
    CONSTRAINT pins_version_from_one CHECK ((version >= 1))
);

ALTER TABLE ONLY public.pins FORCE ROW LEVEL SECURITY;

CREATE TABLE public.postings (
    namespace text NOT NULL,
    term text NOT NULL,
    scope integer NOT NULL,
    doc bigint NOT NULL,
    tf smallint NOT NULL,
    length integer NOT NULL,
    docs_before integer NOT NULL,
    closer bigint,
    closed_before integer
);

ALTER TABLE ONLY public.postings FORCE ROW LEVEL SECURITY;

CREATE TABLE public.records (
    namespace text NOT NULL,
    id text NOT NULL,
    version integer NOT NULL,
    doc bigint NOT NULL,
    scope text NOT NULL,
    kind text NOT NULL,
    title text NOT NULL,
    title_key text NOT NULL,
    date date NOT NULL,
    value numeric,
    unit text NOT NULL,
    fields jsonb NOT NULL,
    source text NOT NULL,
    tombstone boolean NOT NULL,
    reason text NOT NULL,
    valid_from timestamp with time zone,
    valid_to timestamp with time zone,
    origin text NOT NULL,
    client text NOT NULL,
    session text NOT NULL,
    model text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT record_unit_with_value CHECK (((value IS NOT NULL) OR (unit = ''::text))),
    CONSTRAINT record_value_finite CHECK (((value IS NULL) OR (value <> ALL (ARRAY['NaN'::numeric, 'Infinity'::numeric, '-Infinity'::numeric])))),
    CONSTRAINT records_known_in_range CHECK (((known_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (known_from < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT records_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'model'::text, 'import'::text, 'human'::text]))),
    CONSTRAINT records_scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text))),
    CONSTRAINT records_times_in_range CHECK (((date >= '1900-01-01'::date) AND (date < '2201-01-01'::date) AND (valid_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (valid_from < '2201-01-01 00:00:00+00'::timestamp with time zone) AND (valid_to < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT records_valid_interval CHECK ((valid_from < valid_to)),
    CONSTRAINT records_version_from_one CHECK ((version >= 1))
);

ALTER TABLE ONLY public.records FORCE ROW LEVEL SECURITY;

ALTER TABLE public.records ALTER COLUMN doc ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.records_doc_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.records_visible (
    namespace text NOT NULL,
    rectangle bigint NOT NULL,
    id text NOT NULL,
    doc bigint NOT NULL,
    scope text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    known_to timestamp with time zone,
    valid_from timestamp with time zone,
    valid_to timestamp with time zone
);

ALTER TABLE ONLY public.records_visible FORCE ROW LEVEL SECURITY;

ALTER TABLE public.records_visible ALTER COLUMN rectangle ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.records_visible_rectangle_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.scopes (
    namespace text NOT NULL,
    scope text NOT NULL,
    number integer NOT NULL,
    known_from timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    client text NOT NULL,
    CONSTRAINT scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text)))
);

ALTER TABLE ONLY public.scopes FORCE ROW LEVEL SECURITY;

CREATE TABLE public.threads (
    namespace text NOT NULL,
    id text NOT NULL,
    version integer NOT NULL,
    scope text NOT NULL,
    title text NOT NULL,
    status text NOT NULL,
    cadence_days integer NOT NULL,
    note text NOT NULL,
    said text NOT NULL,
    origin text NOT NULL,
    client text NOT NULL,
    session text NOT NULL,
    model text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    known_to timestamp with time zone,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT thread_cadence_in_range CHECK (((cadence_days >= 1) AND (cadence_days <= 3660))),
    CONSTRAINT thread_status_known CHECK ((status = ANY (ARRAY['open'::text, 'waiting'::text, 'paused'::text, 'done'::text, 'dropped'::text]))),
    CONSTRAINT threads_known_in_range CHECK (((known_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (known_from < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT threads_known_interval CHECK ((known_to > known_from)),
    CONSTRAINT threads_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'model'::text, 'import'::text, 'human'::text]))),
    CONSTRAINT threads_scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text))),
    CONSTRAINT threads_version_from_one CHECK ((version >= 1))
);

ALTER TABLE ONLY public.threads FORCE ROW LEVEL SECURITY;

CREATE TABLE public.wiki (
    namespace text NOT NULL,
    id text NOT NULL,
    version integer NOT NULL,
    scope text NOT NULL,
    name text NOT NULL,
    core boolean NOT NULL,
    summary text NOT NULL,
    body text NOT NULL,
    cites text[] NOT NULL,
    origin text NOT NULL,
    client text NOT NULL,
    session text NOT NULL,
    model text NOT NULL,
    known_from timestamp with time zone NOT NULL,
    known_to timestamp with time zone,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT wiki_known_in_range CHECK (((known_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (known_from < '2201-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT wiki_known_interval CHECK ((known_to > known_from)),
    CONSTRAINT wiki_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'model'::text, 'import'::text, 'human'::text]))),
    CONSTRAINT wiki_scope_has_a_kind CHECK (((scope = 'global'::text) OR (scope ~ '^(lane|project):[^[:space:]:@]+$'::text))),
    CONSTRAINT wiki_version_from_one CHECK ((version >= 1))
);

ALTER TABLE ONLY public.wiki FORCE ROW LEVEL SECURITY;

ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT calibrations_pkey PRIMARY KEY (namespace, model, analysis, known_from);

ALTER TABLE ONLY public.constraints
    ADD CONSTRAINT constraints_pkey PRIMARY KEY (namespace, id, version);

ALTER TABLE ONLY public.embedding_models
    ADD CONSTRAINT embedding_models_pkey PRIMARY KEY (namespace, model);

ALTER TABLE ONLY public.embeddings_pending
    ADD CONSTRAINT embeddings_pending_pkey PRIMARY KEY (namespace, model, content);

ALTER TABLE ONLY public.embeddings
    ADD CONSTRAINT embeddings_pkey PRIMARY KEY (namespace, model, content);

ALTER TABLE ONLY public.friction
    ADD CONSTRAINT friction_pkey PRIMARY KEY (namespace, id, version);

ALTER TABLE ONLY public.memory_closed
    ADD CONSTRAINT memory_closed_doc_key UNIQUE (namespace, doc);

ALTER TABLE ONLY public.memory_closed
    ADD CONSTRAINT memory_closed_pkey PRIMARY KEY (namespace, scope, closer, doc) INCLUDE (length, docs_before, terms_before);

ALTER TABLE ONLY public.memory
    ADD CONSTRAINT memory_doc_key UNIQUE (namespace, doc);

ALTER TABLE ONLY public.memory
    ADD CONSTRAINT memory_key_key UNIQUE (namespace, key, version);

ALTER TABLE ONLY public.memory
    ADD CONSTRAINT memory_pkey PRIMARY KEY (namespace, id, version);

ALTER TABLE ONLY public.memory_timed
    ADD CONSTRAINT memory_timed_pkey PRIMARY KEY (namespace, scope, doc) INCLUDE (length);

ALTER TABLE ONLY public.memory_visible
    ADD CONSTRAINT memory_visible_pkey PRIMARY KEY (namespace, rectangle);

ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_pkey PRIMARY KEY (namespace);

ALTER TABLE ONLY public.pins
    ADD CONSTRAINT pins_pkey PRIMARY KEY (namespace, id, version);

ALTER TABLE ONLY public.postings
    ADD CONSTRAINT postings_pkey PRIMARY KEY (namespace, term, scope, doc) INCLUDE (tf, length, docs_before, closer);

ALTER TABLE ONLY public.records
    ADD CONSTRAINT records_doc_key UNIQUE (namespace, doc);

ALTER TABLE ONLY public.records
    ADD CONSTRAINT records_identity_key UNIQUE (namespace, kind, title_key, date, version);

ALTER TABLE ONLY public.records
    ADD CONSTRAINT records_pkey PRIMARY KEY (namespace, id, version);

ALTER TABLE ONLY public.records_visible
    ADD CONSTRAINT records_visible_pkey PRIMARY KEY (namespace, rectangle);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_number_key UNIQUE (namespace, number);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (namespace, scope);

ALTER TABLE ONLY public.threads
    ADD CONSTRAINT threads_pkey PRIMARY KEY (namespace, id, version);

ALTER TABLE ONLY public.wiki
    ADD CONSTRAINT wiki_pkey PRIMARY KEY (namespace, id, version);

CREATE UNIQUE INDEX constraints_current_idx ON public.constraints USING btree (namespace, id) WHERE (known_to IS NULL);

CREATE INDEX constraints_recorded_idx ON public.constraints USING btree (namespace, recorded_at);

CREATE UNIQUE INDEX embedding_models_active_idx ON public.embedding_models USING btree (namespace) WHERE active;

CREATE UNIQUE INDEX friction_current_idx ON public.friction USING btree (namespace, id) WHERE (known_to IS NULL);

CREATE INDEX friction_recorded_idx ON public.friction USING btree (namespace, recorded_at);

CREATE INDEX memory_asserted_past_idx ON public.memory USING btree (namespace, recorded_at) WHERE (known_from < recorded_at);

CREATE INDEX memory_content_idx ON public.memory USING btree (namespace, content);

CREATE INDEX memory_occurred_idx ON public.memory USING btree (namespace, scope, occurred);

CREATE INDEX memory_recorded_idx ON public.memory USING btree (namespace, recorded_at, doc);

CREATE INDEX memory_scope_doc_idx ON public.memory USING btree (namespace, scope, doc) INCLUDE (length, docs_before, terms_before, tombstone);

CREATE INDEX memory_visible_doc_idx ON public.memory_visible USING btree (namespace, doc);

CREATE INDEX memory_visible_id_idx ON public.memory_visible USING btree (namespace, id);

CREATE INDEX memory_visible_scan_idx ON public.memory_visible USING btree (namespace, scope, known_from) INCLUDE (known_to, valid_from, valid_to, doc, length, content);

CREATE INDEX memory_words_idx ON public.memory USING btree (namespace, words);

CREATE UNIQUE INDEX pins_current_idx ON public.pins USING btree (namespace, id) WHERE (known_to IS NULL);

CREATE INDEX pins_recorded_idx ON public.pins USING btree (namespace, recorded_at);

CREATE INDEX postings_closed_idx ON public.postings USING btree (namespace, term, scope, closer, doc) INCLUDE (closed_before) WHERE (closer IS NOT NULL);

CREATE INDEX records_recorded_idx ON public.records USING btree (namespace, recorded_at, doc);

CREATE INDEX records_visible_doc_idx ON public.records_visible USING btree (namespace, doc);

CREATE INDEX records_visible_id_idx ON public.records_visible USING btree (namespace, id);

CREATE UNIQUE INDEX threads_current_idx ON public.threads USING btree (namespace, id) WHERE (known_to IS NULL);

CREATE INDEX threads_recorded_idx ON public.threads USING btree (namespace, recorded_at);

CREATE UNIQUE INDEX wiki_current_idx ON public.wiki USING btree (namespace, id) WHERE (known_to IS NULL);

CREATE INDEX wiki_recorded_idx ON public.wiki USING btree (namespace, recorded_at);

CREATE TRIGGER never_change BEFORE UPDATE ON public.memory FOR EACH ROW EXECUTE FUNCTION public.never_change();

CREATE TRIGGER never_change BEFORE UPDATE ON public.records FOR EACH ROW EXECUTE FUNCTION public.never_change();

CREATE TRIGGER only_close BEFORE UPDATE ON public.constraints FOR EACH ROW EXECUTE FUNCTION public.only_close();

CREATE TRIGGER only_close BEFORE UPDATE ON public.friction FOR EACH ROW EXECUTE FUNCTION public.only_close();

CREATE TRIGGER only_close BEFORE UPDATE ON public.pins FOR EACH ROW EXECUTE FUNCTION public.only_close();

CREATE TRIGGER only_close BEFORE UPDATE ON public.threads FOR EACH ROW EXECUTE FUNCTION public.only_close();

CREATE TRIGGER only_close BEFORE UPDATE ON public.wiki FOR EACH ROW EXECUTE FUNCTION public.only_close();

ALTER TABLE ONLY public.memory_closed
    ADD CONSTRAINT memory_closed_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES public.memory(namespace, doc);

ALTER TABLE ONLY public.memory_timed
    ADD CONSTRAINT memory_timed_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES public.memory(namespace, doc);

ALTER TABLE ONLY public.memory_visible
    ADD CONSTRAINT memory_visible_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES public.memory(namespace, doc);

ALTER TABLE ONLY public.records_visible
    ADD CONSTRAINT records_visible_doc_fkey FOREIGN KEY (namespace, doc) REFERENCES public.records(namespace, doc);

ALTER TABLE public.calibrations ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.constraints ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.embedding_models ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.embeddings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.embeddings_pending ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.friction ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory_closed ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory_timed ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory_visible ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.namespaces ENABLE ROW LEVEL SECURITY;

CREATE POLICY own_namespace ON public.calibrations USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.constraints USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.embedding_models USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.embeddings USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.embeddings_pending USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.friction USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.memory USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.memory_closed USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.memory_timed USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.memory_visible USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.namespaces USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.pins USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.postings USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.records USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.records_visible USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.scopes USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.threads USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

CREATE POLICY own_namespace ON public.wiki USING ((namespace = current_setting('brain.namespace'::text, true))) WITH CHECK ((namespace = current_setting('brain.namespace'::text, true)));

ALTER TABLE public.pins ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.postings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.records ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.records_visible ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.scopes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.threads ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.wiki ENABLE ROW LEVEL SECURITY;

GRANT SELECT,INSERT ON TABLE public.calibrations TO brain_app;

GRANT SELECT,INSERT ON TABLE public.constraints TO brain_app;

GRANT UPDATE(known_to) ON TABLE public.constraints TO brain_app;

GRANT SELECT,INSERT ON TABLE public.embedding_models TO brain_app;

GRANT UPDATE(dimensions) ON TABLE public.embedding_models TO brain_app;

GRANT UPDATE(analysis) ON TABLE public.embedding_models TO brain_app;

GRANT UPDATE(active) ON TABLE public.embedding_models TO brain_app;

GRANT SELECT,INSERT ON TABLE public.embeddings TO brain_app;

GRANT SELECT,INSERT,DELETE ON TABLE public.embeddings_pending TO brain_app;

GRANT SELECT,INSERT ON TABLE public.friction TO brain_app;

GRANT UPDATE(known_to) ON TABLE public.friction TO brain_app;

GRANT SELECT,INSERT ON TABLE public.memory TO brain_app;

GRANT SELECT,INSERT ON TABLE public.memory_closed TO brain_app;

GRANT USAGE ON SEQUENCE public.memory_doc_seq TO brain_app;

GRANT SELECT,INSERT ON TABLE public.memory_timed TO brain_app;

GRANT SELECT,INSERT,DELETE ON TABLE public.memory_visible TO brain_app;

GRANT UPDATE(known_to) ON TABLE public.memory_visible TO brain_app;

GRANT SELECT,INSERT ON TABLE public.namespaces TO brain_app;

GRANT UPDATE(last_known) ON TABLE public.namespaces TO brain_app;

GRANT SELECT,INSERT ON TABLE public.pins TO brain_app;

GRANT UPDATE(known_to) ON TABLE public.pins TO brain_app;

GRANT SELECT,INSERT ON TABLE public.postings TO brain_app;

GRANT UPDATE(closer) ON TABLE public.postings TO brain_app;

GRANT UPDATE(closed_before) ON TABLE public.postings TO brain_app;

GRANT SELECT,INSERT ON TABLE public.records TO brain_app;

GRANT USAGE ON SEQUENCE public.records_doc_seq TO brain_app;

GRANT SELECT,INSERT,DELETE ON TABLE public.records_visible TO brain_app;

GRANT UPDATE(known_to) ON TABLE public.records_visible TO brain_app;

GRANT SELECT,INSERT ON TABLE public.scopes TO brain_app;

GRANT SELECT,INSERT ON TABLE public.threads TO brain_app;

GRANT UPDATE(known_to) ON TABLE public.threads TO brain_app;

GRANT SELECT,INSERT ON TABLE public.wiki TO brain_app;

GRANT UPDATE(known_to) ON TABLE public.wiki TO brain_app;
