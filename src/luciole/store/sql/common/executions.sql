-- Executions by request, and their end.

-- name: claim_request_keys
-- rows: namespace text, key text, shard int, schedule_id bigint, fire_us bigint, delay_us bigint, part bigint
INSERT INTO request_key (namespace, key, shard, schedule_id, fire_us, part)
SELECT namespace, key, shard, schedule_id, coalesce(fire_us, {now_us} + delay_us), part FROM {rows} WHERE true
ON CONFLICT (namespace, key) DO NOTHING RETURNING namespace, key, fire_us;

-- name: find_request_keys
-- rows: namespace text, key text
SELECT request_key.namespace, request_key.key, request_key.shard, request_key.schedule_id, request_key.fire_us,
    request_key.part
FROM {rows} JOIN request_key ON request_key.namespace = batch.namespace AND request_key.key = batch.key;

-- The entry comes first, because it may come only with its execution. Answers with those that are new.
-- name: enqueue
-- rows: shard int, schedule_id bigint, part bigint, fire_us bigint, payload blob, request_key text, delay_us bigint, job_id bigint, state int, entry_state int, priority int, flags int, origin int, content_type text, labels text, deadline_us bigint, namespace text, replay_of text, parent text, route bigint, mark bigint
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
SELECT shard, schedule_id, coalesce(fire_us, {now_us} + delay_us), part, job_id, entry_state, 1,
    CASE WHEN fire_us > {now_us} + delay_us THEN fire_us ELSE {now_us} + delay_us END, priority, flags,
    CASE WHEN route <> 0 THEN route
        ELSE (coalesce((SELECT route FROM job WHERE job.job_id = batch.job_id), 0) + mark) & 4611686018427387903 END
FROM {rows} WHERE NOT EXISTS (
    SELECT 1 FROM execution WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
    AND execution.fire_us = coalesce(batch.fire_us, {now_us} + batch.delay_us) AND execution.part = batch.part
)
RETURNING fire_us, part;
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us, payload, content_type, labels, deadline_us, namespace, request_key, replay_of, parent)
SELECT shard, schedule_id, coalesce(fire_us, {now_us} + delay_us), part, job_id, state, 1,
    CASE WHEN fire_us > {now_us} + delay_us THEN fire_us ELSE {now_us} + delay_us END, priority, flags, origin,
    {now_us}, payload, content_type, labels, deadline_us, namespace, request_key, replay_of, parent
FROM {rows} WHERE true
ON CONFLICT (shard, schedule_id, fire_us, part) DO NOTHING;

-- Requests whose ids nobody has used, with nothing but a payload: `enqueue` with half as much to carry. Answers with
-- those that are new; a dialect may leave out the look for what is there, where it can do without an answer then.
-- name: enqueue_new
-- rows: shard int, part bigint, payload blob, job_id bigint, delay_us bigint, priority int, flags int, content_type text, namespace text, route bigint
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
SELECT shard, 0, {now_us} + delay_us, part, job_id, 1, 1, {now_us} + delay_us, priority, flags, route
FROM {rows} WHERE NOT EXISTS (
    SELECT 1 FROM execution WHERE execution.shard = batch.shard AND execution.schedule_id = 0
    AND execution.fire_us = {now_us} + batch.delay_us AND execution.part = batch.part
)
RETURNING fire_us, part;
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us, payload, content_type, namespace)
SELECT shard, 0, {now_us} + delay_us, part, job_id, 0, 1, {now_us} + delay_us, priority, flags, 1, {now_us},
    payload, content_type, namespace
FROM {rows} WHERE true
ON CONFLICT (shard, schedule_id, fire_us, part) DO NOTHING;

-- One request with a request key: claims the key, and creates what it names.
-- name: enqueue_named
-- rows: shard int, schedule_id bigint, part bigint, fire_us bigint, payload blob, request_key text, delay_us bigint, job_id bigint, state int, entry_state int, priority int, flags int, origin int, content_type text, labels text, deadline_us bigint, namespace text, replay_of text, parent text, route bigint, mark bigint
-- why: it saves round trips; without them claim_request_keys, find_request_keys and enqueue do the same

-- name: schedule_of_request
SELECT schedule.state, cursor.policy_id FROM schedule
JOIN cursor ON cursor.shard = schedule.shard AND cursor.schedule_id = schedule.schedule_id
WHERE schedule.schedule_id = :schedule_id AND schedule.shard = :shard;

-- name: entries_of_schedules
-- rows: shard int, schedule_id bigint
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part, entry.state FROM {rows}
JOIN entry ON entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
ORDER BY entry.shard, entry.schedule_id, entry.fire_us, entry.part;

-- name: cancel_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
UPDATE entry SET cancel = TRUE FROM {rows} WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
AND entry.fire_us = batch.fire_us AND entry.part = batch.part;

-- name: cancel_executions
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
UPDATE execution SET state = 12, finished_us = {now_us} FROM {rows} WHERE execution.shard = batch.shard
AND execution.schedule_id = batch.schedule_id AND execution.fire_us = batch.fire_us AND execution.part = batch.part;

-- name: execution_states
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
SELECT execution.shard, execution.schedule_id, execution.fire_us, execution.part, execution.state FROM {rows}
JOIN execution ON execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
    AND execution.fire_us = batch.fire_us AND execution.part = batch.part;

-- name: unpark_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
UPDATE entry SET state = 1, due_us = {now_us} FROM {rows} WHERE entry.shard = batch.shard
AND entry.schedule_id = batch.schedule_id AND entry.fire_us = batch.fire_us AND entry.part = batch.part;
UPDATE execution SET state = 0, due_us = {now_us}, error = NULL FROM {rows} WHERE execution.shard = batch.shard
AND execution.schedule_id = batch.schedule_id AND execution.fire_us = batch.fire_us AND execution.part = batch.part;

-- name: prune_walk
SELECT shard, schedule_id, fire_us, part, state, finished_us, namespace, request_key FROM execution
WHERE shard = :shard AND (schedule_id, fire_us, part) > (:schedule_id, :fire_us, :part)
ORDER BY schedule_id, fire_us, part LIMIT :limit;

-- name: delete_executions
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
DELETE FROM execution WHERE (shard, schedule_id, fire_us, part) IN (SELECT shard, schedule_id, fire_us, part FROM {rows});

-- name: delete_attempts
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
DELETE FROM attempt WHERE (shard, schedule_id, fire_us, part) IN (SELECT shard, schedule_id, fire_us, part FROM {rows});

-- name: delete_request_keys
-- rows: namespace text, key text
DELETE FROM request_key WHERE (namespace, key) IN (SELECT namespace, key FROM {rows});

-- Tells other processes of new executions when the transaction that made them commits.
-- name: tell_at_commit
-- why: nothing to tell where they see the commit itself
