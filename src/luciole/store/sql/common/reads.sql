-- Pages for people and programs. CROSS JOIN keeps some planners from changing the order of the tables.

-- name: list_schedules
SELECT schedule.schedule_id, schedule.shard, schedule.namespace, schedule.name, schedule.owner, schedule.policy_id,
    schedule.version,
    CASE WHEN schedule.state = 'active' AND cursor.due_us IS NULL THEN 'exhausted' ELSE schedule.state END,
    schedule.reason, schedule.created_us, schedule.updated_us, cursor.fire_us, cursor.due_us, cursor.revision,
    trigger_spec.spec, job.namespace, job.handler, job.payload, job.content_type, job.options
FROM schedule CROSS JOIN cursor CROSS JOIN trigger_spec CROSS JOIN job
WHERE cursor.shard = schedule.shard AND cursor.schedule_id = schedule.schedule_id
AND trigger_spec.trigger_id = schedule.trigger_id AND job.job_id = schedule.job_id
AND (schedule.namespace, schedule.name) > (:after_namespace, :after_name)
ORDER BY schedule.namespace, schedule.name LIMIT :limit;

-- name: list_schedules_of_namespace
SELECT schedule.schedule_id, schedule.shard, schedule.namespace, schedule.name, schedule.owner, schedule.policy_id,
    schedule.version,
    CASE WHEN schedule.state = 'active' AND cursor.due_us IS NULL THEN 'exhausted' ELSE schedule.state END,
    schedule.reason, schedule.created_us, schedule.updated_us, cursor.fire_us, cursor.due_us, cursor.revision,
    trigger_spec.spec, job.namespace, job.handler, job.payload, job.content_type, job.options
FROM schedule CROSS JOIN cursor CROSS JOIN trigger_spec CROSS JOIN job
WHERE cursor.shard = schedule.shard AND cursor.schedule_id = schedule.schedule_id
AND trigger_spec.trigger_id = schedule.trigger_id AND job.job_id = schedule.job_id
AND schedule.namespace = :namespace AND schedule.name >= :low AND schedule.name < :high AND schedule.name > :after_name
AND (CAST(:owner AS text) IS NULL OR schedule.owner = :owner)
ORDER BY schedule.name LIMIT :limit;

-- name: get_schedule
SELECT schedule.schedule_id, schedule.shard, schedule.namespace, schedule.name, schedule.owner, schedule.policy_id,
    schedule.version,
    CASE WHEN schedule.state = 'active' AND cursor.due_us IS NULL THEN 'exhausted' ELSE schedule.state END,
    schedule.reason, schedule.created_us, schedule.updated_us, cursor.fire_us, cursor.due_us, cursor.revision,
    trigger_spec.spec, job.namespace, job.handler, job.payload, job.content_type, job.options
FROM schedule CROSS JOIN cursor CROSS JOIN trigger_spec CROSS JOIN job
WHERE cursor.shard = schedule.shard AND cursor.schedule_id = schedule.schedule_id
AND trigger_spec.trigger_id = schedule.trigger_id AND job.job_id = schedule.job_id
AND schedule.namespace = :namespace AND schedule.name = :name AND schedule.state <> 'deleted';

-- States are bits of a mask, so that one statement serves every choice of them.
-- name: list_by_schedule
-- each: shard int, fire_us bigint, part bigint
SELECT shard, schedule_id, fire_us, part FROM execution
WHERE shard = :shard AND schedule_id = :schedule_id AND (fire_us, part) < (:fire_us, :part)
AND (CAST(:states AS int) >> state) & 1 = 1
ORDER BY fire_us DESC, part DESC LIMIT :limit;

-- name: list_open
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part FROM entry
JOIN execution ON execution.shard = entry.shard AND execution.schedule_id = entry.schedule_id
    AND execution.fire_us = entry.fire_us AND execution.part = entry.part
WHERE (entry.fire_us, entry.shard, entry.schedule_id, entry.part) < (:fire_us, :shard, :schedule_id, :part)
AND (CAST(:states AS int) >> execution.state) & 1 = 1
ORDER BY entry.fire_us DESC, entry.shard DESC, entry.schedule_id DESC, entry.part DESC LIMIT :limit;

-- name: list_troubled
SELECT shard, schedule_id, fire_us, part, at_us FROM failure
WHERE (at_us, shard, schedule_id, fire_us, part) < (:at_us, :shard, :schedule_id, :fire_us, :part)
AND (CAST(:states AS int) >> state) & 1 = 1
ORDER BY at_us DESC, shard DESC, schedule_id DESC, fire_us DESC, part DESC LIMIT :limit;

-- name: list_by_key
SELECT shard, schedule_id, fire_us, part FROM execution
WHERE (shard, schedule_id, fire_us, part) > (:shard, :schedule_id, :fire_us, :part)
AND (CAST(:states AS int) >> state) & 1 = 1
ORDER BY shard, schedule_id, fire_us, part LIMIT :limit;

-- name: read_executions
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
SELECT execution.shard, execution.schedule_id, execution.fire_us, execution.part,
    coalesce(job.namespace, execution.namespace, ''), coalesce(job.handler, ''), execution.job_id, execution.state,
    execution.attempt, execution.due_us, execution.priority, execution.origin, execution.created_us,
    execution.started_us, execution.finished_us, execution.executor_id, coalesce(execution.payload, job.payload),
    coalesce(execution.content_type, job.content_type, ''), execution.result, execution.result_type, execution.error,
    execution.progress, execution.request_key, execution.replay_of, execution.parent, execution.labels,
    execution.deadline_us, entry.cancel
FROM {rows}
JOIN execution ON execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
    AND execution.fire_us = batch.fire_us AND execution.part = batch.part
LEFT JOIN job ON job.job_id = execution.job_id
LEFT JOIN entry ON entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
    AND entry.fire_us = batch.fire_us AND entry.part = batch.part;

-- name: read_attempts
SELECT attempt, outcome, error, executor_id, started_us, finished_us FROM attempt
WHERE shard = :shard AND schedule_id = :schedule_id AND fire_us = :fire_us AND part = :part ORDER BY attempt;

-- name: list_jobs
SELECT job.job_id, job.namespace, job.handler, latest.versions, job.options FROM (
    SELECT max(job_id) AS job_id, count(*) AS versions FROM job
    WHERE CAST(:namespace AS text) IS NULL OR namespace = :namespace
    GROUP BY namespace, handler ORDER BY namespace, handler LIMIT :limit
) AS latest JOIN job ON job.job_id = latest.job_id
ORDER BY job.namespace, job.handler;

-- name: count_due_cursors
-- each: shard int
SELECT count(*), min(due_us) FROM (
    SELECT due_us FROM cursor WHERE shard = :shard AND due_us IS NOT NULL AND due_us <= {now_us} ORDER BY due_us LIMIT :most
) AS due;

-- name: count_ready_entries
-- each: shard int, priority int
SELECT count(*), min(due_us) FROM (
    SELECT due_us FROM entry WHERE shard = :shard AND priority = :priority AND state = 1 AND due_us <= {now_us}
        AND executor_id IS NULL
    ORDER BY due_us LIMIT :most
) AS due;

-- name: count_open_entries
SELECT count(*) FROM (SELECT 1 FROM entry LIMIT :most) AS counted;

-- name: count_parked
SELECT count(*) FROM (SELECT 1 FROM failure WHERE state = 5 LIMIT :most) AS counted;

-- name: sample_parked
SELECT shard, schedule_id, fire_us, part FROM failure WHERE state = 5
ORDER BY shard, schedule_id, fire_us, part LIMIT :limit;
