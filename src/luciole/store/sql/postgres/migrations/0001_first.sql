-- Every hot table is keyed shard first, so that it distributes by shard unchanged. No foreign keys on hot tables
-- (they cost a third of the planning rate), and no index names a column that settling an execution updates.
-- Narrow columns come first: two-byte ones before eight-byte ones leave no padding.

CREATE TABLE node (
    node_id text PRIMARY KEY,
    host text NOT NULL,
    pid bigint NOT NULL,
    address text,
    version text NOT NULL,
    tzdata text NOT NULL,
    started_us bigint NOT NULL,
    seen_us bigint NOT NULL,
    telemetry text NOT NULL
) WITH (fillfactor = 50);

-- One row a shard, made at initialisation and never deleted. Its only key column is the shard: that lets renewals
-- pass plans in flight, which hold FOR KEY SHARE, while a take-over asks for FOR UPDATE and waits for them.
CREATE TABLE lease (
    shard smallint PRIMARY KEY,
    holder text,
    fence bigint NOT NULL,
    expires_us bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE id_segment (
    name text PRIMARY KEY,
    next bigint NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE trigger_spec (
    trigger_id bigint PRIMARY KEY,
    spec text NOT NULL,
    digest bytea NOT NULL UNIQUE
);

CREATE TABLE job (
    job_id bigint PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    handler text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    content_type text NOT NULL,
    options text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    created_us bigint NOT NULL
);
CREATE INDEX job_handler ON job (namespace, handler, job_id);

CREATE TABLE schedule (
    schedule_id bigint PRIMARY KEY,
    shard smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    owner text NOT NULL,
    job_id bigint NOT NULL,
    trigger_id bigint NOT NULL,
    policy_id bigint NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    reason text,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    UNIQUE (namespace, name)
);

-- What planning reads and moves. due_us is NULL while the schedule does not fire.
CREATE TABLE cursor (
    shard smallint NOT NULL,
    schedule_id bigint NOT NULL,
    fire_us bigint NOT NULL,
    due_us bigint,
    revision bigint NOT NULL,
    trigger_id bigint NOT NULL,
    job_id bigint NOT NULL,
    policy_id bigint NOT NULL,
    PRIMARY KEY (shard, schedule_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX cursor_due ON cursor (shard, due_us) WHERE due_us IS NOT NULL;

-- Half of each page is left for the second version that the end of a run writes: no index hears of it (HOT).
CREATE TABLE execution (
    shard smallint NOT NULL,
    state smallint NOT NULL,
    attempt smallint NOT NULL,
    priority smallint NOT NULL,
    flags smallint NOT NULL,
    origin smallint NOT NULL,
    schedule_id bigint NOT NULL,
    fire_us bigint NOT NULL,
    part bigint NOT NULL,
    job_id bigint NOT NULL,
    due_us bigint NOT NULL,
    created_us bigint NOT NULL,
    started_us bigint,
    finished_us bigint,
    executor_id text,
    payload bytea,
    content_type text,
    result bytea,
    result_type text,
    error text,
    progress text,
    labels text,
    deadline_us bigint,
    namespace text,
    request_key text,
    replay_of text,
    parent text,
    PRIMARY KEY (shard, schedule_id, fire_us, part)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1);

-- The outbox: a row exists while its execution is open. Partial indexes know the states as literals.
CREATE TABLE entry (
    shard smallint NOT NULL,
    state smallint NOT NULL,
    attempt smallint NOT NULL,
    priority smallint NOT NULL,
    flags smallint NOT NULL,
    failures smallint NOT NULL DEFAULT 0,
    losses smallint NOT NULL DEFAULT 0,
    delivered boolean NOT NULL DEFAULT FALSE,
    cancel boolean NOT NULL DEFAULT FALSE,
    schedule_id bigint NOT NULL,
    fire_us bigint NOT NULL,
    part bigint NOT NULL,
    job_id bigint NOT NULL,
    due_us bigint NOT NULL,
    executor_id text,
    PRIMARY KEY (shard, schedule_id, fire_us, part)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX entry_ready ON entry (shard, priority, due_us) WHERE state = 1;
CREATE INDEX entry_cancel ON entry (shard) WHERE cancel;

-- Attempts that did not simply succeed.
CREATE TABLE attempt (
    shard smallint NOT NULL,
    attempt smallint NOT NULL,
    schedule_id bigint NOT NULL,
    fire_us bigint NOT NULL,
    part bigint NOT NULL,
    outcome text NOT NULL,
    error text,
    executor_id text,
    started_us bigint,
    finished_us bigint NOT NULL,
    PRIMARY KEY (shard, schedule_id, fire_us, part, attempt)
);

-- Executions that ended in trouble, and parked ones: small, so that lists of them need no index on execution.
CREATE TABLE failure (
    shard smallint NOT NULL,
    state smallint NOT NULL,
    schedule_id bigint NOT NULL,
    fire_us bigint NOT NULL,
    part bigint NOT NULL,
    at_us bigint NOT NULL,
    PRIMARY KEY (shard, schedule_id, fire_us, part)
);
CREATE INDEX failure_at ON failure (at_us);

CREATE TABLE ledger (
    shard smallint NOT NULL,
    schedule_id bigint NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    fires bigint NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (shard, schedule_id, first_us, reason)
);

CREATE TABLE request_key (
    shard smallint NOT NULL,
    schedule_id bigint NOT NULL,
    fire_us bigint NOT NULL,
    part bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, key)
);
