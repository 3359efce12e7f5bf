-- What must hold after a run, in words that every SQL store understands; none is built by the product's own SQL.
-- Each question has one number for an answer, and says which: `= 0`, `= :jobs`, `> 0`. Values come by name. `of` names the
-- profiles that ask it.

-- Read before the instant, not judged: every cursor of the burst stands at one revision, and this is it.
-- name: revision_before
-- of: burst
-- expect: read
SELECT CASE WHEN min(c.revision) = max(c.revision) THEN min(c.revision) ELSE -1 END
FROM schedule s JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix;

-- name: due_before_the_instant
-- of: burst
-- expect: read
SELECT count(*) FROM cursor c WHERE c.due_us < :at_us;

-- name: schedules
-- of: burst register chaos steady mixed
-- expect: = :jobs
SELECT count(*) FROM schedule s WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix;

-- name: executions_of_the_instant
-- of: burst
-- expect: = :jobs
SELECT count(*) FROM schedule s JOIN execution e ON e.shard = s.shard AND e.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix AND e.fire_us = :at_us AND e.part = 0;

-- name: executions_beside_the_instant
-- of: burst
-- expect: = 0
SELECT count(*) FROM schedule s JOIN execution e ON e.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix AND NOT (e.shard = s.shard AND e.fire_us = :at_us AND e.part = 0);

-- name: succeeded
-- of: burst
-- expect: = :jobs
SELECT count(*) FROM schedule s JOIN execution e ON e.shard = s.shard AND e.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix AND e.state = 10;

-- name: executions_not_terminal
-- of: burst enqueue chaos
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.state < 10;

-- One fire time of one schedule, two executions.
-- name: doubles
-- of: burst enqueue chaos steady steady-overrun mixed backlog submit
-- expect: = 0
SELECT count(*) FROM (
    SELECT e.schedule_id, e.fire_us FROM execution e WHERE e.part >= 0
    GROUP BY e.schedule_id, e.fire_us HAVING count(*) > 1
) doubled;

-- name: fire_times_without_outcome
-- of: burst
-- expect: = 0
SELECT count(*) FROM schedule s
WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix
AND NOT EXISTS (
    SELECT 1 FROM execution e WHERE e.schedule_id = s.schedule_id AND e.shard = s.shard AND e.fire_us = :at_us
)
AND NOT EXISTS (
    SELECT 1 FROM ledger l WHERE l.schedule_id = s.schedule_id AND l.shard = s.shard
    AND :at_us BETWEEN l.first_us AND l.last_us
);

-- name: fires_skipped
-- of: burst
-- expect: = 0
SELECT coalesce(sum(l.fires), 0) FROM ledger l;

-- name: cursors_unmoved
-- of: burst
-- expect: = 0
SELECT count(*) FROM schedule s LEFT JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix
AND (c.fire_us IS NULL OR c.due_us IS NULL OR c.fire_us <= :at_us OR c.due_us <= :at_us);

-- name: cursors_not_moved_once
-- of: burst
-- expect: = 0
SELECT count(*) FROM schedule s JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix AND c.revision <> :revision + 1;

-- name: open_entries
-- of: burst enqueue register chaos steady mixed backlog
-- expect: = 0
SELECT count(*) FROM entry;

-- A second attempt has a first that failed or was lost; in a burst none does.
-- name: second_attempts
-- of: burst enqueue steady backlog
-- expect: = 0
SELECT (SELECT count(*) FROM execution e WHERE e.attempt <> 1) + (SELECT count(*) FROM attempt);

-- What an outdated fence wrote was written before planning may begin: nobody else wrote then.
-- name: stale_writes_accepted
-- of: burst
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.fire_us = :at_us AND e.created_us < :opens_us;

-- An execution of a schedule that began while an earlier one had not ended.
-- name: overlaps
-- of: burst enqueue chaos steady steady-overrun mixed
-- expect: = 0
SELECT count(*) FROM (
    SELECT e.created_us, max(coalesce(e.finished_us, 9000000000000000)) OVER (
        PARTITION BY e.shard, e.schedule_id ORDER BY e.created_us, e.fire_us, e.part
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS busy_until_us
    FROM execution e WHERE e.schedule_id <> 0
) run WHERE run.created_us < run.busy_until_us;

-- name: executions_in_a_wrong_shard
-- of: burst enqueue chaos steady steady-overrun mixed backlog
-- expect: = 0
SELECT count(*) FROM execution e JOIN schedule s ON s.schedule_id = e.schedule_id WHERE s.shard <> e.shard;

-- name: lease_rows
-- of: burst enqueue register chaos steady steady-overrun mixed backlog submit
-- expect: = :shards
SELECT count(*) FROM lease;

-- A take-over in the middle would have made the figures those of something else.
-- name: fences_as_granted
-- of: burst
-- expect: = :fence_sum
SELECT sum(fence) FROM lease;

-- Not of chaos: a node that can't say how its deliveries ended lets its leases run out.
-- name: leases_left
-- of: burst enqueue register steady mixed backlog submit
-- expect: = 0
SELECT count(*) FROM lease WHERE holder IS NOT NULL;

-- name: nodes_left
-- of: burst enqueue register steady mixed backlog submit
-- expect: = 0
SELECT count(*) FROM node;

-- One by request is one execution, whole and by itself.
-- name: executions_by_request
-- of: enqueue submit
-- expect: = :jobs
SELECT count(*) FROM execution e WHERE e.schedule_id = 0 AND e.part < 0;

-- name: requests_succeeded
-- of: enqueue
-- expect: = :jobs
SELECT count(*) FROM execution e WHERE e.schedule_id = 0 AND e.state = 10;

-- name: schedules_at_all
-- of: register
-- expect: = :all
SELECT count(*) FROM schedule s;

-- A schedule without a cursor would never fire, one whose cursor is due already would fire at once.
-- name: cursors_far_away
-- of: register
-- expect: = :all
SELECT count(*) FROM schedule s JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id
WHERE c.due_us >= s.created_us + 86400000000 AND c.fire_us = c.due_us;

-- name: executions_at_all
-- of: register
-- expect: = 0
SELECT count(*) FROM execution e;

-- name: executions_not_succeeded
-- of: chaos steady backlog
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.state <> 10;

-- An attempt follows only one that is recorded as failed or lost.
-- name: attempts_without_a_recorded_end
-- of: chaos mixed
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.attempt - 1 <> (
    SELECT count(*) FROM attempt a WHERE a.shard = e.shard AND a.schedule_id = e.schedule_id
    AND a.fire_us = e.fire_us AND a.part = e.part AND a.attempt < e.attempt
);

-- Every fire time up to the cursor is an execution or stands in the ledger, and the first is the first of all.
-- name: schedules_with_lost_fire_times
-- of: chaos
-- expect: = 0
SELECT count(*) FROM (
    SELECT c.fire_us AS next_us,
        (SELECT count(*) FROM execution e WHERE e.shard = s.shard AND e.schedule_id = s.schedule_id AND e.part = 0)
            AS fired,
        (SELECT coalesce(sum(l.fires), 0) FROM ledger l WHERE l.shard = s.shard AND l.schedule_id = s.schedule_id)
            AS skipped,
        (SELECT min(one_us) FROM (
            SELECT e.fire_us AS one_us FROM execution e WHERE e.shard = s.shard AND e.schedule_id = s.schedule_id
            UNION ALL
            SELECT l.first_us FROM ledger l WHERE l.shard = s.shard AND l.schedule_id = s.schedule_id) each_fire
        ) AS first_us
    FROM schedule s JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id
    WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix
) one
WHERE one.first_us IS NULL OR one.first_us >= :start_us + :period_us
OR (one.next_us - one.first_us) <> (one.fired + one.skipped) * :period_us;

-- Fire times of a window that are an execution or stand in the ledger.
-- name: fires_with_an_outcome
-- of: steady mixed backlog
-- expect: = :fires
SELECT (SELECT count(*) FROM execution e WHERE e.schedule_id <> 0 AND e.part = 0)
    + (SELECT coalesce(sum(l.fires), 0) FROM ledger l);

-- Each schedule by itself: one may not stand in for another.
-- name: schedules_that_fired_otherwise
-- of: steady mixed backlog
-- expect: = 0
SELECT count(*) FROM (
    SELECT (SELECT count(*) FROM execution e WHERE e.shard = s.shard AND e.schedule_id = s.schedule_id AND e.part = 0)
        + (SELECT coalesce(sum(l.fires), 0) FROM ledger l WHERE l.shard = s.shard AND l.schedule_id = s.schedule_id)
        AS fires
    FROM schedule s WHERE s.namespace = :namespace AND substr(s.name, 1, length(:prefix)) = :prefix
) one WHERE one.fires <> :fires_each;

-- name: fires_outside_the_window
-- of: steady mixed
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.schedule_id <> 0 AND NOT (e.fire_us >= :start_us AND e.fire_us < :end_us);

-- name: cursors_still_due
-- of: steady mixed backlog
-- expect: = 0
SELECT count(*) FROM cursor c WHERE c.due_us < :end_us;

-- name: fires_missed
-- of: steady steady-overrun
-- expect: read
SELECT coalesce(sum(l.fires), 0) FROM ledger l;

-- name: scheduled_not_succeeded
-- of: mixed
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.schedule_id <> 0 AND e.state <> 10;

-- name: requests
-- of: mixed
-- expect: = :requests
SELECT count(*) FROM execution e WHERE e.schedule_id = 0;

-- name: requests_that_succeeded_at_once
-- of: mixed
-- expect: = :plain
SELECT count(*) FROM execution e WHERE e.schedule_id = 0 AND e.state = 10 AND e.attempt = 1;

-- name: requests_that_succeeded_at_the_second_attempt
-- of: mixed
-- expect: = :retried
SELECT count(*) FROM execution e WHERE e.schedule_id = 0 AND e.state = 10 AND e.attempt = 2;

-- name: first_attempts_recorded_as_failed
-- of: mixed
-- expect: = :retried
SELECT count(*) FROM attempt a WHERE a.attempt = 1 AND a.outcome = 'failed';

-- name: requests_cancelled
-- of: mixed
-- expect: = :cancelled
SELECT count(*) FROM execution e WHERE e.schedule_id = 0 AND e.state = 12;

-- What was missed brings what its policy says: the latest, none, or so many.
-- name: executions_of_fire_once
-- of: backlog
-- expect: = :once
SELECT count(*) FROM execution e JOIN schedule s ON s.shard = e.shard AND s.schedule_id = e.schedule_id
WHERE substr(s.name, 1, 13) = 'overdue-once-';

-- name: executions_of_skip
-- of: backlog
-- expect: = 0
SELECT count(*) FROM execution e JOIN schedule s ON s.shard = e.shard AND s.schedule_id = e.schedule_id
WHERE substr(s.name, 1, 13) = 'overdue-skip-';

-- name: executions_of_catch_up
-- of: backlog
-- expect: = :caught
SELECT count(*) FROM execution e JOIN schedule s ON s.shard = e.shard AND s.schedule_id = e.schedule_id
WHERE substr(s.name, 1, 14) = 'overdue-catch-';

-- name: executions_of_fresh_fires
-- of: backlog
-- expect: = :fresh
SELECT count(*) FROM execution e JOIN schedule s ON s.shard = e.shard AND s.schedule_id = e.schedule_id
WHERE substr(s.name, 1, 6) = 'fresh-';

-- Read back after the window, not judged: what the store holds says what the running parts took the parameters for.
-- name: shards
-- of: read-back
-- expect: read
SELECT count(*) FROM lease;

-- name: executions
-- of: read-back
-- expect: read
SELECT count(*) FROM execution;

-- Of runs that the handler was asked for, by the executors' own clock.
-- name: handler_us_least
-- of: effective
-- expect: read
SELECT coalesce(min(e.finished_us - e.started_us), 0) FROM execution e
WHERE e.schedule_id <> 0 AND e.started_us IS NOT NULL AND e.finished_us IS NOT NULL;

-- name: executions_planned_ahead
-- of: effective
-- expect: read
SELECT count(*) FROM execution e WHERE e.schedule_id <> 0 AND e.created_us < e.due_us;

-- name: executions_planned_too_far_ahead
-- of: effective
-- expect: read
SELECT count(*) FROM execution e WHERE e.schedule_id <> 0 AND e.created_us < e.due_us - :plan_ahead_us;

-- As encoded, which is a little more than the argument.
-- name: stored_payload_bytes
-- of: read-back
-- expect: read
SELECT coalesce(max(length(e.payload)), 0) FROM execution e;
