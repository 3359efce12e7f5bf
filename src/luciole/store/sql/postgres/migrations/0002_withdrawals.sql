-- How often something that was planned ahead was taken back, by shard.
CREATE TABLE withdrawal (
    shard smallint PRIMARY KEY,
    revision bigint NOT NULL
) WITH (fillfactor = 20);
