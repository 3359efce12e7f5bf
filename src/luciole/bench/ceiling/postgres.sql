-- The same rows as a burst, written by the server alone: cursor update, execution insert, entry insert, with fence
-- check and overlap probe, each batch one transaction. Next fire times come from a small map.

CREATE TABLE ceiling_next (trigger_id bigint, fire_us bigint, next_us bigint, PRIMARY KEY (trigger_id, fire_us));

CREATE PROCEDURE ceiling_fill(jobs bigint, shards int, triggers int, at_us bigint) LANGUAGE plpgsql AS $$
BEGIN
    TRUNCATE cursor, execution, entry, ceiling_next;
    UPDATE lease SET holder = 'ceiling', fence = 1, expires_us = 9000000000000000;
    INSERT INTO ceiling_next SELECT n, at_us, at_us + 86400000000 + n FROM generate_series(1, triggers) n;
    INSERT INTO cursor (shard, schedule_id, fire_us, due_us, revision, trigger_id, job_id, policy_id)
    SELECT n % shards, n, at_us - 1, at_us + 86400000000, 0, 1 + n % triggers, 1, 1 FROM generate_series(1, jobs) n;
    UPDATE cursor SET fire_us = at_us, due_us = at_us, revision = 1;
END $$;

-- `wide` shards share a transaction, so that small shards fill a batch together.
CREATE PROCEDURE ceiling_run(chosen int[], wide int, batch int, before_us bigint, INOUT written bigint)
LANGUAGE plpgsql AS $$
DECLARE
    these int[];
    count bigint;
BEGIN
    written := 0;
    FOR place IN 1 .. cardinality(chosen) BY wide LOOP
        these := chosen[place : place + wide - 1];
        LOOP
            WITH guard AS MATERIALIZED (
                SELECT l.shard FROM lease l
                WHERE l.shard = ANY (these) AND l.holder = 'ceiling' AND l.fence = 1
                AND l.expires_us > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
                FOR KEY SHARE
            ), due AS MATERIALIZED (
                SELECT d.* FROM guard g, LATERAL (
                    SELECT c.shard, c.schedule_id, c.fire_us, c.due_us, c.revision, c.trigger_id FROM cursor c
                    WHERE c.shard = g.shard AND c.due_us IS NOT NULL AND c.due_us <= before_us
                    ORDER BY c.due_us LIMIT batch
                ) d
            ), moved AS (
                UPDATE cursor c SET fire_us = m.next_us, due_us = m.next_us, revision = c.revision + 1
                FROM due d JOIN ceiling_next m ON m.trigger_id = d.trigger_id AND m.fire_us = d.fire_us
                WHERE c.shard = d.shard AND c.schedule_id = d.schedule_id
                AND c.fire_us = d.fire_us AND c.revision = d.revision
                RETURNING c.shard, c.schedule_id, d.fire_us, d.due_us, c.job_id
            ), made AS (
                INSERT INTO execution (shard, state, attempt, priority, flags, origin, schedule_id, fire_us, part,
                    job_id, due_us, created_us)
                SELECT v.shard, 1, 1, 5, 0, 0, v.schedule_id, v.fire_us, 0, v.job_id, v.due_us, before_us
                FROM moved v
                WHERE NOT EXISTS (SELECT FROM entry e WHERE e.shard = v.shard AND e.schedule_id = v.schedule_id OFFSET 0)
                ON CONFLICT DO NOTHING
                RETURNING shard, schedule_id, fire_us, job_id, due_us
            )
            INSERT INTO entry (shard, state, attempt, priority, flags, schedule_id, fire_us, part, job_id, due_us)
            SELECT m.shard, 0, 1, 5, 0, m.schedule_id, m.fire_us, 0, m.job_id, m.due_us FROM made m;
            GET DIAGNOSTICS count = ROW_COUNT;
            COMMIT;
            written := written + count;
            EXIT WHEN count < batch;
        END LOOP;
    END LOOP;
END $$;
