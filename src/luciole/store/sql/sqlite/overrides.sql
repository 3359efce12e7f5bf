-- Statements that SQLite has in a way of its own.

-- name: schema_exists
-- why: it has no information_schema
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'migration';

-- name: ready_heads
-- rows: shard int, priority int
-- why: same as with the next one
SELECT batch.shard, batch.priority,
    (SELECT min(due_us) FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1),
    (SELECT min(due_us) FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1
        AND due_us > :before_us),
    EXISTS (
        SELECT 1 FROM entry INDEXED BY entry_cancel
        WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND cancel
    )
FROM {rows};

-- name: cancelled_entries
-- each: shard int
-- why: without statistics its planner would rather read all open entries, in order, than sort the few of the index
SELECT entry.shard, entry.schedule_id, entry.fire_us, entry.part, entry.due_us, entry.priority, entry.attempt,
    entry.failures, entry.job_id, entry.flags, entry.state, entry.losses, entry.delivered, entry.cancel, entry.route,
    execution.payload, execution.content_type, execution.labels, execution.deadline_us
FROM entry INDEXED BY entry_cancel LEFT JOIN execution ON entry.part < 0 AND execution.shard = entry.shard
    AND execution.schedule_id = entry.schedule_id AND execution.fire_us = entry.fire_us AND execution.part = entry.part
WHERE entry.shard = :shard AND entry.cancel
ORDER BY entry.schedule_id, entry.fire_us, entry.part LIMIT :limit;
