-- Statements that SQLite has in a way of its own.

-- name: schema_exists
-- why: it has no information_schema
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'migration';
