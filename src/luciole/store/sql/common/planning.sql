-- Due cursors in, executions and entries out.

-- name: due_cursors
-- each: shard int, quota bigint
SELECT shard, schedule_id, revision, fire_us, due_us, trigger_id, job_id, policy_id
FROM cursor WHERE shard = :shard AND due_us IS NOT NULL AND due_us <= :before_us
ORDER BY due_us, schedule_id LIMIT :quota;

-- name: next_cursors
-- each: shard int
SELECT due_us FROM cursor WHERE shard = :shard AND due_us IS NOT NULL AND due_us > :before_us ORDER BY due_us LIMIT 1;

-- name: load_triggers
-- rows: trigger_id bigint
SELECT trigger_spec.trigger_id, trigger_spec.spec
FROM {rows} JOIN trigger_spec ON trigger_spec.trigger_id = batch.trigger_id;

-- name: load_jobs
-- rows: job_id bigint
SELECT job.job_id, job.namespace, job.handler, job.payload, job.content_type, job.options
FROM {rows} JOIN job ON job.job_id = batch.job_id;

-- The plain moves of a chunk, those that bring one fire and no ledger row, take two statements: one finds those that
-- can't be written as they are (normally none), the other writes. A dialect with several writers overrides
-- both, because here nothing locks the cursors.
-- name: judge_moves
-- rows: shard int, schedule_id bigint, cursor_us bigint, revision bigint, fire_us bigint, due_us bigint, next_fire_us bigint, next_due_us bigint, overlap int, priority int, flags int, ready int, job_id bigint
SELECT batch.schedule_id FROM {rows}
WHERE NOT EXISTS (
    SELECT 1 FROM cursor WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id
    AND cursor.fire_us = batch.cursor_us AND cursor.revision = batch.revision AND cursor.due_us IS NOT NULL
) OR (batch.overlap <> 0 AND EXISTS (
    SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
)) OR EXISTS (
    SELECT 1 FROM execution WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
    AND execution.fire_us = batch.fire_us AND execution.part = 0
);

-- Answers with the schedules that it left alone.
-- name: write_moves
-- rows: shard int, schedule_id bigint, cursor_us bigint, revision bigint, fire_us bigint, due_us bigint, next_fire_us bigint, next_due_us bigint, overlap int, priority int, flags int, ready int, job_id bigint
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin, created_us)
SELECT shard, schedule_id, fire_us, 0, job_id, 1 - ready, 1, due_us, priority, flags, 0, {now_us} FROM {rows};
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags)
SELECT shard, schedule_id, fire_us, 0, job_id, ready, 1, due_us, priority, flags FROM {rows};
UPDATE cursor SET fire_us = batch.next_fire_us, due_us = batch.next_due_us, revision = cursor.revision + 1
FROM {rows} WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id;

-- All other moves: lock, look, decide in Python, write.
-- name: lock_cursors
-- rows: shard int, schedule_id bigint
SELECT cursor.shard, cursor.schedule_id, cursor.fire_us, cursor.revision, cursor.due_us
FROM {rows} JOIN cursor ON cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id
ORDER BY cursor.shard, cursor.schedule_id {for_update};

-- What is open of a schedule: one that releases no successor, a waiting one, one that may run, a parked one.
-- name: open_of_schedules
-- rows: shard int, schedule_id bigint
SELECT batch.schedule_id,
    EXISTS (SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
        AND entry.flags NOT IN (2, 3)),
    EXISTS (SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
        AND entry.state = 2),
    EXISTS (SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
        AND entry.state IN (0, 1)),
    EXISTS (SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
        AND entry.state = 3)
FROM {rows}
WHERE EXISTS (SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id);

-- name: existing_fires
-- rows: shard int, schedule_id bigint, fire_us bigint
SELECT execution.schedule_id, execution.fire_us FROM {rows} JOIN execution
ON execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
AND execution.fire_us = batch.fire_us AND execution.part = 0;

-- One that a later fire of its own move replaced has ended already.
-- name: insert_fires
-- rows: shard int, schedule_id bigint, fire_us bigint, job_id bigint, state int, due_us bigint, priority int, flags int
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us, finished_us)
SELECT shard, schedule_id, fire_us, 0, job_id, state, 1, due_us, priority, flags, 0, {now_us},
    CASE WHEN state = 12 THEN {now_us} END
FROM {rows};

-- name: insert_fire_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, job_id bigint, state int, due_us bigint, priority int, flags int, cancel bool
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, cancel)
SELECT shard, schedule_id, fire_us, 0, job_id, state, 1, due_us, priority, flags, cancel FROM {rows};

-- name: move_cursors
-- rows: shard int, schedule_id bigint, fire_us bigint, due_us bigint
UPDATE cursor SET fire_us = batch.fire_us, due_us = batch.due_us, revision = cursor.revision + 1
FROM {rows} WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id;

-- name: park_schedules
-- rows: schedule_id bigint, shard int, reason text
UPDATE schedule SET state = 'parked', reason = batch.reason, updated_us = {now_us}
FROM {rows} WHERE schedule.schedule_id = batch.schedule_id AND schedule.shard = batch.shard AND schedule.state = 'active'
AND EXISTS (SELECT 1 FROM cursor WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id
    AND cursor.due_us IS NOT NULL)
RETURNING schedule.shard, schedule.schedule_id;

-- name: stop_cursors
-- rows: shard int, schedule_id bigint
UPDATE cursor SET due_us = NULL, revision = cursor.revision + 1
FROM {rows} WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id;
