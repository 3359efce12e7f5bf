-- What users declare.

-- name: take_ids
UPDATE id_segment SET next = next + :count WHERE name = :name RETURNING next - :count;

-- name: find_jobs
-- rows: digest blob
SELECT job.digest, job.job_id FROM {rows} JOIN job ON job.digest = batch.digest;

-- name: insert_jobs
-- rows: job_id bigint, namespace text, handler text, payload blob, content_type text, options text, digest blob
INSERT INTO job (job_id, namespace, handler, payload, content_type, options, digest, created_us)
SELECT job_id, namespace, handler, payload, content_type, options, digest, {now_us} FROM {rows} WHERE true
ON CONFLICT (digest) DO NOTHING;

-- name: find_triggers
-- rows: digest blob
SELECT trigger_spec.digest, trigger_spec.trigger_id FROM {rows} JOIN trigger_spec ON trigger_spec.digest = batch.digest;

-- name: insert_triggers
-- rows: trigger_id bigint, spec text, digest blob
INSERT INTO trigger_spec (trigger_id, spec, digest) SELECT trigger_id, spec, digest FROM {rows} WHERE true
ON CONFLICT (digest) DO NOTHING;

-- name: lock_schedules_by_name
-- rows: namespace text, name text
SELECT schedule.namespace, schedule.name, schedule.schedule_id, schedule.shard, schedule.owner, schedule.job_id,
    schedule.trigger_id, schedule.policy_id, schedule.state
FROM {rows} JOIN schedule ON schedule.namespace = batch.namespace AND schedule.name = batch.name
ORDER BY schedule.schedule_id {for_update};

-- name: insert_schedules
-- rows: schedule_id bigint, shard int, namespace text, name text, owner text, job_id bigint, trigger_id bigint, policy_id bigint
INSERT INTO schedule (schedule_id, shard, namespace, name, owner, job_id, trigger_id, policy_id, version, state,
    created_us, updated_us)
SELECT schedule_id, shard, namespace, name, owner, job_id, trigger_id, policy_id, 1, 'active', {now_us}, {now_us}
FROM {rows} WHERE true
ON CONFLICT (namespace, name) DO NOTHING RETURNING schedule_id;

-- name: insert_cursors
-- rows: shard int, schedule_id bigint, fire_us bigint, due_us bigint, trigger_id bigint, job_id bigint, policy_id bigint
INSERT INTO cursor (shard, schedule_id, fire_us, due_us, revision, trigger_id, job_id, policy_id)
SELECT shard, schedule_id, fire_us, due_us, 0, trigger_id, job_id, policy_id FROM {rows};
