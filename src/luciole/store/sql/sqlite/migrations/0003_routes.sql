-- What an entry asks of an executor, as a number, so that the work of one handler is found behind another's backlog.
-- Entries that are there keep 0: of those no two are told apart. Entries in memory are in neither of the two indexes.
ALTER TABLE job ADD COLUMN route INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entry ADD COLUMN route INTEGER NOT NULL DEFAULT 0;
CREATE INDEX entry_route ON entry (shard, priority, route, due_us) WHERE state = 1;
