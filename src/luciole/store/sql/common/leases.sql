-- Who is alive, and who holds which shard.

-- name: clock
SELECT {now_us};

-- Says that a node is alive, forgets those that were not for long, and answers as `cluster` does.
-- name: beat
INSERT INTO node (node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry)
VALUES (:node_id, :host, :pid, :address, :version, :tzdata, :started_us, {now_us}, :telemetry)
ON CONFLICT (node_id) DO UPDATE
SET address = excluded.address, seen_us = excluded.seen_us, telemetry = excluded.telemetry;
DELETE FROM node WHERE seen_us <= {now_us} - :forget_after_us;
SELECT shard, holder, fence, expires_us, {now_us},
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM lease
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry
FROM node WHERE seen_us > {now_us} - :node_ttl_us;

-- Every lease, then everybody alive: one question for two tables.
-- name: cluster
SELECT shard, holder, fence, expires_us, {now_us},
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM lease
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry
FROM node WHERE seen_us > {now_us} - :node_ttl_us;

-- name: leave
DELETE FROM node WHERE node_id = :node_id;
UPDATE lease SET holder = NULL, expires_us = 0 WHERE holder = :node_id;

-- The lock waits for plans in flight under the old fence; the update then re-checks, as a new statement.
-- name: lock_free_leases
-- rows: shard int
SELECT lease.shard FROM {rows} JOIN lease ON lease.shard = batch.shard
WHERE lease.holder IS NULL OR lease.expires_us <= {now_us}
ORDER BY lease.shard {for_update};

-- name: take_leases
-- rows: shard int
UPDATE lease SET holder = :node_id, fence = fence + 1, expires_us = {now_us} + :ttl_us
FROM {rows} WHERE lease.shard = batch.shard AND (holder IS NULL OR expires_us <= {now_us})
RETURNING lease.shard, fence, expires_us;

-- name: renew_leases
-- rows: shard int, holder text, fence bigint
UPDATE lease SET expires_us = {now_us} + :ttl_us
FROM {rows} WHERE lease.shard = batch.shard
AND lease.holder = batch.holder AND lease.fence = batch.fence AND lease.expires_us > {now_us}
RETURNING lease.shard, lease.fence, lease.expires_us;

-- name: release_leases
-- rows: shard int, holder text, fence bigint
UPDATE lease SET holder = NULL, expires_us = 0
FROM {rows} WHERE lease.shard = batch.shard AND lease.holder = batch.holder AND lease.fence = batch.fence;

-- The guard of every write under a lease; it holds until the end of the transaction.
-- name: check_fences
-- rows: shard int, holder text, fence bigint
SELECT lease.shard FROM {rows} JOIN lease ON lease.shard = batch.shard
WHERE lease.holder = batch.holder AND lease.fence = batch.fence AND lease.expires_us > {now_us}
ORDER BY lease.shard {for_update};
