-- Every hot table is clustered by its key, shard first. No index names a column that settling an execution
-- updates. STRICT, so that a wrong type is an error here as it is on other databases.

CREATE TABLE node (
    node_id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    address TEXT,
    version TEXT NOT NULL,
    tzdata TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    seen_us INTEGER NOT NULL,
    telemetry TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row a shard, made at initialisation and never deleted.
CREATE TABLE lease (
    shard INTEGER PRIMARY KEY,
    holder TEXT,
    fence INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT;

CREATE TABLE id_segment (
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE trigger_spec (
    trigger_id INTEGER PRIMARY KEY,
    spec TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE
) STRICT;

CREATE TABLE job (
    job_id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    handler TEXT NOT NULL,
    payload BLOB NOT NULL,
    content_type TEXT NOT NULL,
    options TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    created_us INTEGER NOT NULL
) STRICT;
CREATE INDEX job_handler ON job (namespace, handler, job_id);

CREATE TABLE schedule (
    schedule_id INTEGER PRIMARY KEY,
    shard INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    trigger_id INTEGER NOT NULL,
    policy_id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    UNIQUE (namespace, name)
) STRICT;

-- What planning reads and moves. due_us is NULL while the schedule does not fire.
CREATE TABLE cursor (
    shard INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL,
    fire_us INTEGER NOT NULL,
    due_us INTEGER,
    revision INTEGER NOT NULL,
    trigger_id INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    policy_id INTEGER NOT NULL,
    PRIMARY KEY (shard, schedule_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX cursor_due ON cursor (shard, due_us) WHERE due_us IS NOT NULL;

CREATE TABLE execution (
    shard INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL,
    fire_us INTEGER NOT NULL,
    part INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    due_us INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    started_us INTEGER,
    finished_us INTEGER,
    executor_id TEXT,
    payload BLOB,
    content_type TEXT,
    result BLOB,
    result_type TEXT,
    error TEXT,
    progress TEXT,
    labels TEXT,
    deadline_us INTEGER,
    namespace TEXT,
    request_key TEXT,
    replay_of TEXT,
    parent TEXT,
    PRIMARY KEY (shard, schedule_id, fire_us, part)
) STRICT, WITHOUT ROWID;

-- The outbox: a row exists while its execution is open. Partial indexes know the states as literals.
CREATE TABLE entry (
    shard INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL,
    fire_us INTEGER NOT NULL,
    part INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    due_us INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    cancel INTEGER NOT NULL DEFAULT 0,
    executor_id TEXT,
    PRIMARY KEY (shard, schedule_id, fire_us, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_ready ON entry (shard, priority, due_us) WHERE state = 1;
CREATE INDEX entry_cancel ON entry (shard) WHERE cancel;

-- Attempts that did not simply succeed.
CREATE TABLE attempt (
    shard INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL,
    fire_us INTEGER NOT NULL,
    part INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error TEXT,
    executor_id TEXT,
    started_us INTEGER,
    finished_us INTEGER NOT NULL,
    PRIMARY KEY (shard, schedule_id, fire_us, part, attempt)
) STRICT, WITHOUT ROWID;

-- Executions that ended in trouble, and parked ones: small, so that lists of them need no index on execution.
CREATE TABLE failure (
    shard INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL,
    fire_us INTEGER NOT NULL,
    part INTEGER NOT NULL,
    state INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (shard, schedule_id, fire_us, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX failure_at ON failure (at_us);

CREATE TABLE ledger (
    shard INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL,
    first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    fires INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (shard, schedule_id, first_us, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_key (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    shard INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL,
    fire_us INTEGER NOT NULL,
    part INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;
