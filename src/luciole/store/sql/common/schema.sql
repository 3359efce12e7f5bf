-- What migrations and initialisation need besides the numbered files of each dialect.

-- Taken first, so that processes that start at once wait for each other.
-- name: lock_schema
SELECT 1;

-- name: schema_exists
SELECT count(*) FROM information_schema.tables WHERE table_name = 'migration' AND table_schema = current_schema();

-- name: create_migration_tables
CREATE TABLE IF NOT EXISTS migration (number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, at_us bigint NOT NULL);
CREATE TABLE IF NOT EXISTS meta (key text PRIMARY KEY, value text NOT NULL);

-- name: applied_migrations
SELECT number, name, checksum FROM migration ORDER BY number;

-- name: record_migration
INSERT INTO migration (number, name, checksum, at_us) VALUES (:number, :name, :checksum, {now_us});

-- name: read_meta
SELECT value FROM meta WHERE key = :key;

-- name: write_meta
INSERT INTO meta (key, value) VALUES (:key, :value);

-- name: insert_leases
-- rows: shard int
INSERT INTO lease (shard, holder, fence, expires_us) SELECT shard, NULL, 0, 0 FROM {rows};

-- name: insert_id_segment
INSERT INTO id_segment (name, next) VALUES (:name, 1);

-- name: count_leases
SELECT count(*) FROM lease;

-- Job versions that an earlier version of this program stored.
-- name: unrouted_jobs
SELECT job_id, namespace, handler, options FROM job WHERE job_id > :after AND route = 0 ORDER BY job_id LIMIT :limit;

-- name: route_jobs
-- rows: job_id bigint, route bigint
UPDATE job SET route = batch.route FROM {rows} WHERE job.job_id = batch.job_id;

-- name: lease_fences
SELECT shard, fence FROM lease;

-- What repair restores. Somebody else may be at it, too.
-- name: restore_leases
-- rows: shard int, holder text, fence bigint
INSERT INTO lease (shard, holder, fence, expires_us) SELECT shard, holder, fence, 0 FROM {rows} WHERE true
ON CONFLICT (shard) DO NOTHING;

-- name: id_segments
SELECT name FROM id_segment;

-- name: restore_id_segment
INSERT INTO id_segment (name, next) VALUES (:name, :next) ON CONFLICT (name) DO NOTHING;

-- Reads every execution: an execution by request has the negative of its id as its part.
-- name: greatest_id
SELECT max(id) FROM (
    SELECT max(schedule_id) AS id FROM schedule
    UNION ALL SELECT max(schedule_id) FROM cursor
    UNION ALL SELECT max(schedule_id) FROM execution
    UNION ALL SELECT -min(part) FROM execution
) AS used;

-- name: greatest_job
SELECT max(id) FROM (
    SELECT max(job_id) AS id FROM job UNION ALL SELECT max(job_id) FROM schedule UNION ALL SELECT max(job_id) FROM entry
) AS used;

-- name: greatest_trigger
SELECT max(id) FROM (
    SELECT max(trigger_id) AS id FROM trigger_spec UNION ALL SELECT max(trigger_id) FROM schedule
) AS used;
