-- Fire times that did not become executions: a range, a count, a reason.

-- name: ledger_heads
-- each: shard int, schedule_id bigint
SELECT shard, schedule_id, first_us, last_us, fires, reason FROM ledger
WHERE shard = :shard AND schedule_id = :schedule_id
ORDER BY first_us DESC, last_us DESC, fires DESC, reason DESC LIMIT 1;

-- The last fire time of a schedule, before an instant, that became an execution.
-- name: last_fires
-- each: shard int, schedule_id bigint, before_us bigint
SELECT shard, schedule_id, CAST(:before_us AS bigint), fire_us FROM execution
WHERE shard = :shard AND schedule_id = :schedule_id AND fire_us < :before_us AND part >= 0
ORDER BY fire_us DESC LIMIT 1;

-- name: extend_ledger
-- rows: shard int, schedule_id bigint, first_us bigint, reason text, last_us bigint, fires bigint
UPDATE ledger SET last_us = batch.last_us, fires = batch.fires
FROM {rows} WHERE ledger.shard = batch.shard AND ledger.schedule_id = batch.schedule_id
AND ledger.first_us = batch.first_us AND ledger.reason = batch.reason;

-- name: insert_ledger
-- rows: shard int, schedule_id bigint, first_us bigint, reason text, last_us bigint, fires bigint
INSERT INTO ledger (shard, schedule_id, first_us, reason, last_us, fires)
SELECT shard, schedule_id, first_us, reason, last_us, fires FROM {rows} WHERE true
ON CONFLICT (shard, schedule_id, first_us, reason) DO NOTHING;

-- name: list_ledger
SELECT first_us, last_us, fires, reason FROM ledger WHERE shard = :shard AND schedule_id = :schedule_id
ORDER BY first_us DESC, last_us DESC, fires DESC, reason DESC LIMIT :limit;

-- name: prune_ledger
DELETE FROM ledger WHERE (shard, schedule_id, first_us, reason) IN (
    SELECT shard, schedule_id, first_us, reason FROM ledger WHERE shard = :shard AND last_us < :before_us
    ORDER BY shard, schedule_id, first_us, last_us, fires, reason LIMIT :limit
);
