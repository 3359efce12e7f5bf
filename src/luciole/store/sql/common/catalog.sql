-- What users declare.

-- name: take_ids
UPDATE id_segment SET next = next + :count WHERE name = :name RETURNING next - :count;

-- name: find_jobs
-- rows: digest blob
SELECT job.digest, job.job_id FROM {rows} JOIN job ON job.digest = batch.digest;

-- name: insert_jobs
-- rows: digest blob, job_id bigint, namespace text, handler text, payload blob, content_type text, options text, route bigint
INSERT INTO job (job_id, namespace, handler, payload, content_type, options, digest, created_us, route)
SELECT job_id, namespace, handler, payload, content_type, options, digest, {now_us}, route FROM {rows} WHERE true
ON CONFLICT (digest) DO NOTHING RETURNING digest, job_id;

-- name: find_triggers
-- rows: digest blob
SELECT trigger_spec.digest, trigger_spec.trigger_id FROM {rows} JOIN trigger_spec ON trigger_spec.digest = batch.digest;

-- name: insert_triggers
-- rows: trigger_id bigint, spec text, digest blob
INSERT INTO trigger_spec (trigger_id, spec, digest) SELECT trigger_id, spec, digest FROM {rows} WHERE true
ON CONFLICT (digest) DO NOTHING RETURNING digest, trigger_id;

-- name: lock_schedules_by_name
-- rows: namespace text, name text
SELECT schedule.namespace, schedule.name, schedule.schedule_id, schedule.shard, schedule.owner, schedule.job_id,
    schedule.trigger_id, schedule.policy_id, schedule.state, cursor.fire_us, cursor.due_us
FROM {rows} JOIN schedule ON schedule.namespace = batch.namespace AND schedule.name = batch.name
JOIN cursor ON cursor.shard = schedule.shard AND cursor.schedule_id = schedule.schedule_id
ORDER BY schedule.schedule_id {for_update};

-- Answers with the ids of those whose name is taken, normally none.
-- name: insert_schedules
-- rows: schedule_id bigint, shard int, name text, namespace text, owner text, job_id bigint, trigger_id bigint, policy_id bigint, fire_us bigint, due_us bigint
INSERT INTO schedule (schedule_id, shard, namespace, name, owner, job_id, trigger_id, policy_id, version, state,
    created_us, updated_us)
SELECT schedule_id, shard, namespace, name, owner, job_id, trigger_id, policy_id, 1, 'active', {now_us}, {now_us}
FROM {rows} WHERE true
ON CONFLICT (namespace, name) DO NOTHING;
INSERT INTO cursor (shard, schedule_id, fire_us, due_us, revision, trigger_id, job_id, policy_id)
SELECT batch.shard, batch.schedule_id, fire_us, due_us, 0, batch.trigger_id, batch.job_id, batch.policy_id
FROM {rows} JOIN schedule ON schedule.schedule_id = batch.schedule_id;
SELECT schedule_id FROM {rows}
WHERE NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.schedule_id = batch.schedule_id);

-- name: lock_schedule
SELECT schedule.shard, schedule.state, cursor.fire_us, cursor.due_us, cursor.revision
FROM schedule JOIN cursor ON cursor.shard = schedule.shard AND cursor.schedule_id = schedule.schedule_id
WHERE schedule.schedule_id = :schedule_id {for_update};

-- name: write_cursor
UPDATE cursor SET fire_us = :fire_us, due_us = :due_us, revision = revision + 1
WHERE shard = :shard AND schedule_id = :schedule_id;

-- name: write_schedule_state
UPDATE schedule SET state = :state, reason = :reason, updated_us = {now_us} WHERE schedule_id = :schedule_id;

-- name: edit_schedule
UPDATE schedule SET owner = :owner, job_id = :job_id, trigger_id = :trigger_id, policy_id = :policy_id,
    version = version + 1, state = :state, reason = CASE WHEN state = 'paused' THEN reason END, updated_us = {now_us}
WHERE schedule_id = :schedule_id;
UPDATE cursor SET job_id = :job_id, trigger_id = :trigger_id, policy_id = :policy_id, fire_us = :fire_us,
    due_us = :due_us, revision = revision + 1
WHERE shard = :shard AND schedule_id = :schedule_id;

-- What was made ahead and is not due.
-- name: future_entries
SELECT shard, schedule_id, fire_us, part, state, flags, due_us FROM entry
WHERE shard = :shard AND schedule_id = :schedule_id AND part >= 0 AND attempt = 1 AND due_us > {now_us}
ORDER BY fire_us, part {for_update};

-- Retention: a page of a shard's schedules, and whether each still fires.
-- name: schedule_walk
SELECT schedule_id, due_us FROM cursor WHERE shard = :shard AND schedule_id > :after ORDER BY schedule_id LIMIT :limit;

-- name: lock_stopped
-- rows: shard int, schedule_id bigint
SELECT cursor.schedule_id, schedule.state, schedule.updated_us, cursor.fire_us
FROM {rows} JOIN cursor ON cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id
JOIN schedule ON schedule.schedule_id = batch.schedule_id
WHERE cursor.due_us IS NULL
ORDER BY cursor.shard, cursor.schedule_id {for_update};

-- Those of them that left something behind.
-- name: kept_schedules
-- rows: shard int, schedule_id bigint
SELECT batch.schedule_id FROM {rows}
WHERE EXISTS (SELECT 1 FROM execution WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id)
OR EXISTS (SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id)
OR EXISTS (SELECT 1 FROM ledger WHERE ledger.shard = batch.shard AND ledger.schedule_id = batch.schedule_id);

-- name: delete_schedules
-- rows: schedule_id bigint
DELETE FROM schedule WHERE schedule_id IN (SELECT schedule_id FROM {rows});

-- name: delete_cursors
-- rows: shard int, schedule_id bigint
DELETE FROM cursor WHERE (shard, schedule_id) IN (SELECT shard, schedule_id FROM {rows});

-- Where the next chunk of a selection begins; no row: this one is the last.
-- name: reschedule_end
SELECT name FROM schedule WHERE namespace = :namespace AND name >= :low AND name < :high
ORDER BY name LIMIT 1 OFFSET :limit;

-- I4: one that is due stays: its fire time needs an outcome first.
-- name: reschedule
UPDATE cursor SET fire_us = :at_us, due_us = :at_us, revision = cursor.revision + 1
FROM schedule WHERE schedule.namespace = :namespace AND schedule.name >= :low AND schedule.name < :high
AND schedule.state = 'active' AND cursor.shard = schedule.shard AND cursor.schedule_id = schedule.schedule_id
AND cursor.due_us > {now_us}
RETURNING cursor.shard;
