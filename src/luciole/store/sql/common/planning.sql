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

-- What an entry asks of an executor is noted where it may be polled, and left out where memory has it.
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
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
SELECT shard, schedule_id, fire_us, 0, job_id, ready, 1, due_us, priority, flags,
    CASE WHEN ready = 1 THEN coalesce((SELECT route FROM job WHERE job.job_id = batch.job_id), 0) ELSE 0 END
FROM {rows};
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
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, cancel, route)
SELECT shard, schedule_id, fire_us, 0, job_id, state, 1, due_us, priority, flags, cancel,
    CASE WHEN state <> 0 THEN coalesce((SELECT route FROM job WHERE job.job_id = batch.job_id), 0) ELSE 0 END
FROM {rows};

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

-- Strides: the same step for many cursors. Steps and cursors are chosen into two temporary tables of the connection;
-- a dialect that has everything in one statement overrides all four and takes the columns by name.
-- name: due_groups
-- each: shard int, quota bigint
SELECT shard, trigger_id, fire_us, due_us, policy_id, count(*), max(schedule_id)
FROM (
    SELECT shard, schedule_id, trigger_id, fire_us, due_us, policy_id
    FROM cursor WHERE shard = :shard AND due_us IS NOT NULL AND due_us <= :before_us
    ORDER BY due_us, schedule_id LIMIT :quota
) AS due GROUP BY shard, trigger_id, fire_us, due_us, policy_id;

-- name: forget_chosen
DELETE FROM chosen_step;
DELETE FROM chosen_cursor;

-- name: choose_steps
-- rows: trigger_id bigint, fire_us bigint, due_us bigint, policy_id bigint, next_fire_us bigint, next_due_us bigint, overlap int, priority int, flags int
INSERT INTO chosen_step (trigger_id, fire_us, due_us, policy_id, next_fire_us, next_due_us, overlap, priority, flags)
SELECT trigger_id, fire_us, due_us, policy_id, next_fire_us, next_due_us, overlap, priority, flags FROM {rows};

-- name: choose_cursors
-- rows: shard int, through_us bigint, through_id bigint, ready int
INSERT INTO chosen_cursor (shard, schedule_id, job_id, fire_us, due_us, next_fire_us, next_due_us, priority, flags, ready)
SELECT cursor.shard, cursor.schedule_id, cursor.job_id, cursor.fire_us, cursor.due_us, chosen_step.next_fire_us,
    chosen_step.next_due_us, chosen_step.priority, chosen_step.flags, batch.ready
FROM {rows} JOIN cursor ON cursor.shard = batch.shard AND cursor.due_us IS NOT NULL
    AND cursor.due_us <= batch.through_us
    AND (cursor.due_us < batch.through_us OR cursor.schedule_id <= batch.through_id)
CROSS JOIN chosen_step
WHERE chosen_step.trigger_id = cursor.trigger_id AND chosen_step.fire_us = cursor.fire_us
AND chosen_step.due_us = cursor.due_us AND chosen_step.policy_id = cursor.policy_id
AND (chosen_step.overlap = 0 OR NOT EXISTS (
    SELECT 1 FROM entry WHERE entry.shard = cursor.shard AND entry.schedule_id = cursor.schedule_id
)) AND NOT EXISTS (
    SELECT 1 FROM execution WHERE execution.shard = cursor.shard AND execution.schedule_id = cursor.schedule_id
    AND execution.fire_us = cursor.fire_us AND execution.part = 0
);

-- Answers with the schedules of each kind of entry, as one text.
-- name: write_chosen
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin, created_us)
SELECT shard, schedule_id, fire_us, 0, job_id, 1 - ready, 1, due_us, priority, flags, 0, {now_us} FROM chosen_cursor;
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
SELECT shard, schedule_id, fire_us, 0, job_id, ready, 1, due_us, priority, flags,
    CASE WHEN ready = 1 THEN coalesce((SELECT route FROM job WHERE job.job_id = chosen_cursor.job_id), 0) ELSE 0 END
FROM chosen_cursor;
UPDATE cursor SET fire_us = chosen_cursor.next_fire_us, due_us = chosen_cursor.next_due_us, revision = cursor.revision + 1
FROM chosen_cursor WHERE cursor.shard = chosen_cursor.shard AND cursor.schedule_id = chosen_cursor.schedule_id;
SELECT shard, fire_us, due_us, priority, flags, ready, group_concat(schedule_id), group_concat(job_id)
FROM chosen_cursor GROUP BY shard, fire_us, due_us, priority, flags, ready;

-- New rules of zones: what the cursors of each shard stand by.
-- name: zone_rules
SELECT key, value FROM meta WHERE key LIKE 'tzdata.%';

-- name: record_rules
-- rows: key text, value text
INSERT INTO meta (key, value) SELECT key, value FROM {rows} WHERE true
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: active_cursors
SELECT shard, schedule_id, revision, fire_us, due_us, trigger_id, job_id, policy_id
FROM cursor WHERE shard = :shard AND schedule_id > :after AND due_us IS NOT NULL
ORDER BY schedule_id LIMIT :limit;

-- name: realign_cursors
-- rows: shard int, schedule_id bigint, fire_us bigint, due_us bigint
UPDATE cursor SET fire_us = batch.fire_us, due_us = batch.due_us, revision = cursor.revision + 1
FROM {rows} WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id;
