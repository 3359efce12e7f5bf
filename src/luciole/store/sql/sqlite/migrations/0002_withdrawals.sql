-- How often something that was planned ahead was taken back, by shard.
CREATE TABLE withdrawal (
    shard INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
