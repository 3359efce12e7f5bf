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
