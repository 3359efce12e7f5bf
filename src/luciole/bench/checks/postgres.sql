-- What must hold after a run, asked in PostgreSQL's own words.
-- Each question has one number for an answer, and says which: `= 0`, `= :jobs`, `> 0`. Values come by name. `of` names the
-- profiles that ask it.

-- Read before the instant, not judged: every cursor of the burst stands at one revision, and this is it.
-- name: revision_before
-- of: burst
-- expect: read
SELECT CASE WHEN min(c.revision) = max(c.revision) THEN min(c.revision) ELSE -1 END
FROM schedule s JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND starts_with(s.name, :prefix);

-- name: due_before_the_instant
-- of: burst
-- expect: read
SELECT count(*) FROM cursor c WHERE c.due_us < :at_us;

-- name: schedules
-- of: burst register
-- expect: = :jobs
SELECT count(*) FROM schedule s WHERE s.namespace = :namespace AND starts_with(s.name, :prefix);

-- name: executions_of_the_instant
-- of: burst
-- expect: = :jobs
SELECT count(*) FROM schedule s JOIN execution e ON e.shard = s.shard AND e.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND starts_with(s.name, :prefix) AND e.fire_us = :at_us AND e.part = 0;

-- name: executions_beside_the_instant
-- of: burst
-- expect: = 0
SELECT count(*) FROM schedule s JOIN execution e ON e.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND starts_with(s.name, :prefix) AND NOT (e.shard = s.shard AND e.fire_us = :at_us AND e.part = 0);

-- name: succeeded
-- of: burst
-- expect: = :jobs
SELECT count(*) FROM schedule s JOIN execution e ON e.shard = s.shard AND e.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND starts_with(s.name, :prefix) AND e.state = 10;

-- name: executions_not_terminal
-- of: burst enqueue
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.state < 10;

-- One fire time of one schedule, two executions.
-- name: doubles
-- of: burst enqueue
-- expect: = 0
SELECT count(*) FROM (
    SELECT e.schedule_id, e.fire_us FROM execution e WHERE e.part >= 0
    GROUP BY e.schedule_id, e.fire_us HAVING count(*) > 1
) doubled;

-- name: fire_times_without_outcome
-- of: burst
-- expect: = 0
SELECT count(*) FROM schedule s
WHERE s.namespace = :namespace AND starts_with(s.name, :prefix)
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
WHERE s.namespace = :namespace AND starts_with(s.name, :prefix)
AND (c.fire_us IS NULL OR c.due_us IS NULL OR c.fire_us <= :at_us OR c.due_us <= :at_us);

-- name: cursors_not_moved_once
-- of: burst
-- expect: = 0
SELECT count(*) FROM schedule s JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id
WHERE s.namespace = :namespace AND starts_with(s.name, :prefix) AND c.revision <> :revision + 1;

-- name: open_entries
-- of: burst enqueue register
-- expect: = 0
SELECT count(*) FROM entry;

-- A second attempt has a first that failed or was lost; in a burst none does.
-- name: second_attempts
-- of: burst enqueue
-- expect: = 0
SELECT (SELECT count(*) FROM execution e WHERE e.attempt <> 1) + (SELECT count(*) FROM attempt);

-- What an outdated fence wrote was written before the gate opened: nobody else wrote then.
-- name: stale_writes_accepted
-- of: burst
-- expect: = 0
SELECT count(*) FROM execution e WHERE e.fire_us = :at_us AND e.created_us < :at_us;

-- name: overlaps
-- of: burst enqueue
-- expect: = 0
SELECT count(*) FROM execution a JOIN execution b
ON b.shard = a.shard AND b.schedule_id = a.schedule_id AND (b.fire_us > a.fire_us OR (b.fire_us = a.fire_us AND b.part > a.part))
WHERE a.schedule_id <> 0 AND b.created_us < coalesce(a.finished_us, b.created_us + 1);

-- name: executions_in_a_wrong_shard
-- of: burst enqueue
-- expect: = 0
SELECT count(*) FROM execution e JOIN schedule s ON s.schedule_id = e.schedule_id WHERE s.shard <> e.shard;

-- name: lease_rows
-- of: burst enqueue register
-- expect: = :shards
SELECT count(*) FROM lease;

-- A take-over in the middle would have made the figures those of something else.
-- name: fences_as_granted
-- of: burst
-- expect: = :fence_sum
SELECT sum(fence) FROM lease;

-- name: leases_left
-- of: burst enqueue register
-- expect: = 0
SELECT count(*) FROM lease WHERE holder IS NOT NULL;

-- name: nodes_left
-- of: burst enqueue register
-- expect: = 0
SELECT count(*) FROM node;

-- One by request is one execution, whole and by itself.
-- name: executions_by_request
-- of: enqueue
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
