-- Statements that PostgreSQL has in a way of its own.

-- name: lock_schema
-- why: processes that migrate at once wait for each other, for as long as that takes
SET LOCAL lock_timeout = '600s';
SET LOCAL statement_timeout = '600s';
SELECT pg_advisory_xact_lock(hashtext(current_setting('search_path')));

-- name: create_migration_tables
-- why: all our tables are in a schema of their own, which the first migration makes
DO $$BEGIN EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', current_setting('search_path')); END$$;
CREATE TABLE IF NOT EXISTS migration (
    number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, at_us bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS meta (key text PRIMARY KEY, value text NOT NULL);

-- name: check_fences
-- rows: shard int, holder text, fence bigint
-- why: plans of one shard share the lock of its lease, and renewals never wait for it; a take-over does
SELECT lease.shard FROM {rows} JOIN lease ON lease.shard = batch.shard
WHERE lease.holder = batch.holder AND lease.fence = batch.fence AND lease.expires_us > {now_us}
ORDER BY lease.shard FOR KEY SHARE OF lease;
