-- Open entries: found, delivered, settled.

-- The first due time of every priority of a shard, the first one after the horizon, and whether the end of something was
-- asked for: where to look for ready entries and for cancels.
-- name: ready_heads
-- rows: shard int, priority int
SELECT batch.shard, batch.priority,
    (SELECT min(due_us) FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1),
    (SELECT min(due_us) FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1
        AND due_us > :before_us),
    EXISTS (SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND cancel)
FROM {rows};

-- name: ready_entries
-- each: shard int, priority int
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part, entry.due_us, entry.priority, entry.attempt,
    entry.failures, entry.job_id, entry.flags, entry.state, entry.losses, entry.delivered, entry.cancel, entry.route,
    execution.payload, execution.content_type, execution.labels, execution.deadline_us
FROM entry LEFT JOIN execution ON entry.part < 0 AND execution.shard = entry.shard
    AND execution.schedule_id = entry.schedule_id AND execution.fire_us = entry.fire_us AND execution.part = entry.part
WHERE entry.shard = :shard AND entry.priority = :priority AND entry.state = 1 AND entry.due_us <= :before_us
    AND NOT entry.cancel
ORDER BY entry.due_us, entry.schedule_id, entry.fire_us, entry.part LIMIT :limit;

-- The first route of each priority of a shard and then one after the other, by a look-up for each: never by reading what
-- waits on one. With the first due time of each.
-- name: ready_routes
-- rows: shard int, priority int
WITH RECURSIVE seen (shard, priority, route, place) AS (
    SELECT batch.shard, batch.priority, (
        SELECT min(route) FROM entry
        WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1 AND route > :after
    ), 1 FROM {rows}
    UNION ALL
    SELECT seen.shard, seen.priority, (
        SELECT min(route) FROM entry
        WHERE entry.shard = seen.shard AND entry.priority = seen.priority AND state = 1 AND route > seen.route
    ), seen.place + 1 FROM seen WHERE seen.route IS NOT NULL AND seen.place < :limit
), found AS (
    SELECT seen.shard, seen.priority, seen.route, (
        SELECT min(due_us) FROM entry WHERE entry.shard = seen.shard AND entry.priority = seen.priority AND state = 1
        AND entry.route = seen.route
    ) AS due_us FROM seen WHERE seen.route IS NOT NULL
)
SELECT shard, priority, route, due_us FROM found ORDER BY shard, priority, route;

-- name: route_entries
-- each: shard int, priority int, route bigint
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part, entry.due_us, entry.priority, entry.attempt,
    entry.failures, entry.job_id, entry.flags, entry.state, entry.losses, entry.delivered, entry.cancel, entry.route,
    execution.payload, execution.content_type, execution.labels, execution.deadline_us
FROM entry LEFT JOIN execution ON entry.part < 0 AND execution.shard = entry.shard
    AND execution.schedule_id = entry.schedule_id AND execution.fire_us = entry.fire_us AND execution.part = entry.part
WHERE entry.shard = :shard AND entry.priority = :priority AND entry.state = 1 AND entry.route = :route
    AND entry.due_us <= :before_us AND NOT entry.cancel
ORDER BY entry.due_us, entry.schedule_id, entry.fire_us, entry.part LIMIT :limit;

-- name: cancelled_entries
-- each: shard int
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part, entry.due_us, entry.priority, entry.attempt,
    entry.failures, entry.job_id, entry.flags, entry.state, entry.losses, entry.delivered, entry.cancel, entry.route,
    execution.payload, execution.content_type, execution.labels, execution.deadline_us
FROM entry LEFT JOIN execution ON entry.part < 0 AND execution.shard = entry.shard
    AND execution.schedule_id = entry.schedule_id AND execution.fire_us = entry.fire_us AND execution.part = entry.part
WHERE entry.shard = :shard AND entry.cancel
ORDER BY entry.schedule_id, entry.fire_us, entry.part LIMIT :limit;

-- name: open_entries
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part, entry.due_us, entry.priority, entry.attempt,
    entry.failures, entry.job_id, entry.flags, entry.state, entry.losses, entry.delivered, entry.cancel, entry.route,
    execution.payload, execution.content_type, execution.labels, execution.deadline_us
FROM entry LEFT JOIN execution ON entry.part < 0 AND execution.shard = entry.shard
    AND execution.schedule_id = entry.schedule_id AND execution.fire_us = entry.fire_us AND execution.part = entry.part
WHERE entry.shard = :shard AND (entry.schedule_id, entry.fire_us, entry.part) > (:schedule_id, :fire_us, :part)
    AND (entry.state = 0 OR (entry.state = 1 AND entry.delivered))
ORDER BY entry.schedule_id, entry.fire_us, entry.part LIMIT :limit;

-- Locked in key order, like everything that changes entries.
-- name: lock_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part, entry.attempt, entry.state, entry.flags, entry.cancel,
    entry.executor_id, execution.state, entry.due_us, entry.delivered
FROM {rows}
JOIN entry ON entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
    AND entry.fire_us = batch.fire_us AND entry.part = batch.part
JOIN execution ON execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
    AND execution.fire_us = batch.fire_us AND execution.part = batch.part
ORDER BY entry.shard, entry.schedule_id, entry.fire_us, entry.part {for_update};

-- What was planned ahead is withdrawn: counted first, so that whoever reads the count waits for the rest.
-- name: count_withdrawals
-- rows: shard int
INSERT INTO withdrawal (shard, revision) SELECT shard, 1 FROM {rows} WHERE true
ON CONFLICT (shard) DO UPDATE SET revision = withdrawal.revision + 1;

-- name: begin_withdrawals
-- rows: shard int
INSERT INTO withdrawal (shard, revision) SELECT shard, 0 FROM {rows} WHERE true ON CONFLICT (shard) DO NOTHING;

-- name: lock_withdrawals
-- rows: shard int
SELECT withdrawal.shard, withdrawal.revision FROM {rows} JOIN withdrawal ON withdrawal.shard = batch.shard
ORDER BY withdrawal.shard {for_update};

-- name: deliver_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, executor_id text
UPDATE entry SET delivered = TRUE, executor_id = batch.executor_id
FROM {rows} WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
AND entry.fire_us = batch.fire_us AND entry.part = batch.part;

-- name: run_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, executor_id text, started_us bigint, progress text
UPDATE entry SET executor_id = batch.executor_id
FROM {rows} WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
AND entry.fire_us = batch.fire_us AND entry.part = batch.part;
UPDATE execution SET state = 2, started_us = batch.started_us, executor_id = batch.executor_id,
    progress = coalesce(batch.progress, execution.progress)
FROM {rows} WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
AND execution.fire_us = batch.fire_us AND execution.part = batch.part;

-- Plain successes take two statements: one finds those whose attempt is not the current one (normally none), the
-- other writes. A dialect with several writers overrides both, because here nothing locks the entries.
-- name: judge_successes
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, attempt int, started_us bigint, finished_us bigint, executor_id text, result blob, result_type text
SELECT batch.shard, batch.schedule_id, batch.fire_us, batch.part FROM {rows}
WHERE NOT EXISTS (
    SELECT 1 FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
    AND entry.fire_us = batch.fire_us AND entry.part = batch.part AND entry.attempt = batch.attempt
    AND entry.state IN (0, 1)
);

-- Answers with the places, from 1, of the rows that it left alone.
-- name: write_successes
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, attempt int, started_us bigint, finished_us bigint, executor_id text, result blob, result_type text
UPDATE execution SET state = 10, started_us = batch.started_us, finished_us = batch.finished_us,
    executor_id = batch.executor_id, result = batch.result, result_type = batch.result_type, error = NULL
FROM {rows} WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
AND execution.fire_us = batch.fire_us AND execution.part = batch.part;
DELETE FROM entry WHERE (shard, schedule_id, fire_us, part) IN (SELECT shard, schedule_id, fire_us, part FROM {rows});

-- name: recorded_outcomes
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, attempt int
SELECT batch.shard, batch.schedule_id, batch.fire_us, batch.part, batch.attempt, execution.state, execution.attempt,
    attempt.outcome
FROM {rows}
JOIN execution ON execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
    AND execution.fire_us = batch.fire_us AND execution.part = batch.part
LEFT JOIN attempt ON attempt.shard = batch.shard AND attempt.schedule_id = batch.schedule_id
    AND attempt.fire_us = batch.fire_us AND attempt.part = batch.part AND attempt.attempt = batch.attempt;

-- name: end_executions
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, state int, started_us bigint, finished_us bigint, executor_id text, result blob, result_type text, error text
UPDATE execution SET state = batch.state, started_us = batch.started_us, finished_us = batch.finished_us,
    executor_id = batch.executor_id, result = batch.result, result_type = batch.result_type, error = batch.error
FROM {rows} WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
AND execution.fire_us = batch.fire_us AND execution.part = batch.part;

-- name: delete_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
DELETE FROM entry WHERE (shard, schedule_id, fire_us, part) IN (SELECT shard, schedule_id, fire_us, part FROM {rows});

-- name: continue_executions
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, state int, attempt int, due_us bigint, error text
UPDATE execution SET state = batch.state, attempt = batch.attempt, due_us = coalesce(batch.due_us, execution.due_us),
    started_us = NULL, executor_id = NULL, progress = NULL, error = batch.error
FROM {rows} WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
AND execution.fire_us = batch.fire_us AND execution.part = batch.part;

-- name: continue_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, state int, attempt int, due_us bigint, failures int, losses int
UPDATE entry SET state = batch.state, attempt = batch.attempt, due_us = coalesce(batch.due_us, entry.due_us),
    failures = entry.failures + batch.failures, losses = entry.losses + batch.losses, delivered = FALSE,
    executor_id = NULL, route = CASE WHEN entry.route <> 0 THEN entry.route
        ELSE coalesce((SELECT route FROM job WHERE job.job_id = entry.job_id), 0) END
FROM {rows} WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
AND entry.fire_us = batch.fire_us AND entry.part = batch.part;

-- name: insert_attempts
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, attempt int, outcome text, error text, executor_id text, started_us bigint, finished_us bigint
INSERT INTO attempt (shard, schedule_id, fire_us, part, attempt, outcome, error, executor_id, started_us, finished_us)
SELECT shard, schedule_id, fire_us, part, attempt, outcome, error, executor_id, started_us, finished_us FROM {rows};

-- name: put_failures
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, state int, at_us bigint
INSERT INTO failure (shard, schedule_id, fire_us, part, state, at_us)
SELECT shard, schedule_id, fire_us, part, state, at_us FROM {rows} WHERE true
ON CONFLICT (shard, schedule_id, fire_us, part) DO UPDATE SET state = excluded.state, at_us = excluded.at_us;

-- name: delete_failures
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
DELETE FROM failure WHERE (shard, schedule_id, fire_us, part) IN (SELECT shard, schedule_id, fire_us, part FROM {rows});

-- Comes after the cursor's lock and before the look at who waits: a plan at the same moment loses its race.
-- name: bump_cursors
-- rows: shard int, schedule_id bigint, steps int
UPDATE cursor SET revision = cursor.revision + batch.steps
FROM {rows} WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id;

-- name: waiting_entries
-- rows: shard int, schedule_id bigint
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part FROM {rows}
JOIN entry ON entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id AND entry.state = 2
ORDER BY entry.shard, entry.schedule_id, entry.fire_us, entry.part;

-- name: release_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
UPDATE entry SET state = 1 FROM {rows} WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
AND entry.fire_us = batch.fire_us AND entry.part = batch.part;
UPDATE execution SET state = 0 FROM {rows} WHERE execution.shard = batch.shard
AND execution.schedule_id = batch.schedule_id AND execution.fire_us = batch.fire_us AND execution.part = batch.part;
