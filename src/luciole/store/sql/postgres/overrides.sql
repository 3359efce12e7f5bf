-- Statements that PostgreSQL has in a way of its own. Several nodes write at once here, so what is judged is judged by
-- the statement that writes it, under the locks that the write takes. `OFFSET 0` keeps a look-up for each row one: made
-- a join, it could be planned in a way that is right for empty tables only.

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

-- name: beat
-- why: one statement, so one round trip and no transaction beside its own. It does not see the row that it writes, which
-- therefore answers by itself
WITH mine AS (
    INSERT INTO node (node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry)
    VALUES (:node_id, :host, :pid, :address, :version, :tzdata, :started_us, {now_us}, :telemetry)
    ON CONFLICT (node_id) DO UPDATE
    SET address = excluded.address, seen_us = excluded.seen_us, telemetry = excluded.telemetry
    RETURNING node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry
), gone AS (
    DELETE FROM node WHERE seen_us <= {now_us} - :forget_after_us AND node_id <> :node_id
)
SELECT shard, holder, fence, expires_us, {now_us},
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM lease
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry
FROM mine
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry
FROM node WHERE seen_us > {now_us} - :node_ttl_us AND node_id <> :node_id;

-- name: check_fences
-- rows: shard int, holder text, fence bigint
-- why: plans of one shard share the lock of its lease, and renewals never wait for it; a take-over does
SELECT lease.shard FROM {rows} JOIN lease ON lease.shard = batch.shard
WHERE lease.holder = batch.holder AND lease.fence = batch.fence AND lease.expires_us > {now_us}
ORDER BY lease.shard FOR KEY SHARE OF lease;

-- name: due_cursors
-- rows: shard int, quota bigint
-- why: one statement for all shards, and behind what is due the first that is not yet: an idle node asks one question,
-- not two. Within one due time in the order of the index, because a burst at one instant would be sorted for each read
SELECT due.* FROM {rows}, LATERAL (
    (SELECT shard, schedule_id, revision, fire_us, due_us, trigger_id, job_id, policy_id
    FROM cursor WHERE cursor.shard = batch.shard AND due_us IS NOT NULL AND due_us <= :before_us
    ORDER BY due_us LIMIT batch.quota)
    UNION ALL
    (SELECT shard, schedule_id, revision, fire_us, due_us, trigger_id, job_id, policy_id
    FROM cursor WHERE cursor.shard = batch.shard AND due_us IS NOT NULL AND due_us > :before_us
    ORDER BY due_us LIMIT 1)
) AS due;

-- name: next_cursors
-- rows: shard int
-- why: nothing to ask: due_cursors has told it

-- name: judge_moves
-- rows: shard int, schedule_id bigint, cursor_us bigint, revision bigint, fire_us bigint, due_us bigint, next_fire_us bigint, next_due_us bigint, overlap int, priority int, flags int, ready int
-- why: nothing to ask before: write_moves judges under the lock of each cursor

-- name: write_moves
-- rows: shard int, schedule_id bigint, cursor_us bigint, revision bigint, fire_us bigint, due_us bigint, next_fire_us bigint, next_due_us bigint, overlap int, priority int, flags int, ready int
-- group: cursor_us, fire_us, due_us, next_fire_us, next_due_us, overlap, priority, flags, ready
-- why: one statement a chunk; the job, last of the columns, is the cursor's own and stays at home. The cursor's row lock decides: who waited for it re-checks the revision, so whatever
-- the snapshot could not see (a manual run, another plan) has moved the revision on, and the move is left alone
WITH batch AS MATERIALIZED (
    SELECT * FROM {rows}
), moved AS (
    UPDATE cursor SET fire_us = batch.next_fire_us, due_us = batch.next_due_us, revision = cursor.revision + 1
    FROM batch
    WHERE cursor.shard = batch.shard AND cursor.schedule_id = batch.schedule_id
    AND cursor.fire_us = batch.cursor_us AND cursor.revision = batch.revision AND cursor.due_us IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
        AND batch.overlap <> 0 OFFSET 0
    )
    AND NOT EXISTS (
        SELECT FROM execution WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
        AND execution.fire_us = batch.fire_us AND execution.part = 0 OFFSET 0
    )
    RETURNING batch.shard, batch.schedule_id, batch.fire_us, batch.due_us, batch.priority, batch.flags, batch.ready,
        cursor.job_id
), fired AS (
    INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
        created_us)
    SELECT shard, schedule_id, fire_us, 0, job_id, 1 - ready, 1, due_us, priority, flags, 0, {now_us} FROM moved
), told AS (
    INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
    SELECT shard, schedule_id, fire_us, 0, job_id, ready, 1, due_us, priority, flags,
        CASE WHEN ready = 1 THEN coalesce((SELECT route FROM job WHERE job.job_id = moved.job_id), 0) ELSE 0 END
    FROM moved
)
SELECT schedule_id FROM batch WHERE (SELECT count(*) FROM moved) < (SELECT count(*) FROM batch)
EXCEPT SELECT schedule_id FROM moved;

-- name: due_groups
-- rows: shard int, quota bigint
-- why: one statement for all shards
SELECT due.shard, trigger_id, fire_us, due_us, policy_id, count(*), max(schedule_id) FROM {rows}, LATERAL (
    SELECT shard, schedule_id, trigger_id, fire_us, due_us, policy_id
    FROM cursor WHERE cursor.shard = batch.shard AND due_us IS NOT NULL AND due_us <= :before_us
    ORDER BY due_us, schedule_id LIMIT batch.quota
) AS due GROUP BY due.shard, trigger_id, fire_us, due_us, policy_id;

-- name: forget_chosen
-- why: nothing is kept between statements

-- name: choose_steps
-- rows: trigger_id bigint, fire_us bigint
-- why: write_chosen chooses and writes in one statement

-- name: choose_cursors
-- rows: shard int, through_us bigint
-- why: same

-- name: write_chosen
-- why: one statement. A cursor is chosen on the snapshot and moved under its row lock: whoever waited for that finds
-- another revision, and leaves the cursor alone. Steps are found by a binary search in their sorted keys (`step_key` in
-- strides.py): joined as rows they would be gone through for each cursor, at twice the cost of all the rest. What follows
-- from a step is looked up where it is written, so that its number is all that goes there. OFFSET 0 and ctid leave the
-- planner no choice but to go from the shares to their cursors, also when it believes the tables empty
WITH share AS MATERIALIZED (
    SELECT * FROM unnest(:shards::int4[], :throughs_us::int8[], :through_ids::int8[], :readies::int4[])
    AS share(shard, through_us, through_id, ready)
), moved AS (
    UPDATE cursor SET fire_us = (:next_fires_us::int8[])[step], due_us = (:next_dues_us::int8[])[step],
        revision = cursor.revision + 1
    FROM share, LATERAL (
        SELECT cursor.ctid AS place, shard, schedule_id, revision, fire_us, due_us, trigger_id, policy_id, width_bucket(
            trigger_id # (fire_us << 5) # (due_us << 11) # (policy_id << 17), :keys::int8[]
        ) AS step
        FROM cursor WHERE cursor.shard = share.shard AND due_us IS NOT NULL AND due_us <= share.through_us
        AND (due_us < share.through_us OR schedule_id <= share.through_id)
        OFFSET 0
    ) AS near
    WHERE near.trigger_id = (:trigger_ids::int8[])[step] AND near.fire_us = (:fires_us::int8[])[step]
    AND near.due_us = (:dues_us::int8[])[step] AND near.policy_id = (:policy_ids::int8[])[step]
    AND NOT EXISTS (
        SELECT FROM entry WHERE entry.shard = near.shard AND entry.schedule_id = near.schedule_id
        AND (:overlaps::int4[])[near.step] <> 0 OFFSET 0
    ) AND NOT EXISTS (
        SELECT FROM execution WHERE execution.shard = near.shard AND execution.schedule_id = near.schedule_id
        AND execution.fire_us = near.fire_us AND execution.part = 0 OFFSET 0
    )
    AND cursor.ctid = near.place AND cursor.shard = near.shard AND cursor.schedule_id = near.schedule_id
    AND cursor.revision = near.revision AND cursor.due_us IS NOT NULL
    RETURNING near.shard, near.schedule_id, near.fire_us, near.due_us, near.step, share.ready, cursor.job_id
), fired AS (
    INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
        created_us)
    SELECT shard, schedule_id, fire_us, 0, job_id, 1 - ready, 1, due_us, (:priorities::int4[])[step],
        (:flags::int4[])[step], 0, {now_us}
    FROM moved
), told AS (
    INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
    SELECT shard, schedule_id, fire_us, 0, job_id, ready, 1, due_us, (:priorities::int4[])[step],
        (:flags::int4[])[step],
        CASE WHEN ready = 1 THEN coalesce((SELECT route FROM job WHERE job.job_id = moved.job_id), 0) ELSE 0 END
    FROM moved
)
SELECT shard, fire_us, due_us, (:priorities::int4[])[step], (:flags::int4[])[step], ready,
    string_agg(schedule_id::text, ','), string_agg(job_id::text, ',')
FROM moved GROUP BY shard, fire_us, due_us, step, ready;

-- name: open_of_schedules
-- rows: shard int, schedule_id bigint
-- why: one look at each schedule instead of five; and no EXISTS, which may be planned to hash the whole table
SELECT batch.schedule_id, found.stays, found.waits, found.runs, found.parked FROM {rows}, LATERAL (
    SELECT bool_or(flags NOT IN (2, 3)) AS stays, bool_or(state = 2) AS waits, bool_or(state IN (0, 1)) AS runs,
        bool_or(state = 3) AS parked
    FROM entry WHERE entry.shard = batch.shard AND entry.schedule_id = batch.schedule_id
) AS found WHERE found.stays IS NOT NULL;

-- name: existing_fires
-- rows: shard int, schedule_id bigint, fire_us bigint
-- why: a look-up for each row; as a join it may be planned to begin with all executions of part 0
SELECT found.schedule_id, found.fire_us FROM {rows}, LATERAL (
    SELECT schedule_id, fire_us FROM execution WHERE execution.shard = batch.shard
    AND execution.schedule_id = batch.schedule_id AND execution.fire_us = batch.fire_us AND execution.part = 0 OFFSET 0
) AS found;

-- name: ready_heads
-- rows: shard int, priority int
-- why: one statement for all shards and priorities; and no EXISTS, which would be planned to hash all that is cancelled
SELECT batch.shard, batch.priority,
    (SELECT min(due_us) FROM entry
        WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1),
    (SELECT min(due_us) FROM entry
        WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1 AND due_us > :before_us),
    (SELECT cancel FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND cancel LIMIT 1)
FROM {rows};

-- name: ready_entries
-- rows: shard int, priority int
-- why: one statement for all shards and priorities
SELECT ready.*, asked.* FROM {rows}, LATERAL (
    SELECT shard, schedule_id, fire_us, part, due_us, priority, attempt, failures, job_id, flags, state, losses,
        delivered, cancel, route
    FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1
        AND due_us <= :before_us AND NOT cancel
    ORDER BY due_us, schedule_id, fire_us, part LIMIT :limit
) AS ready LEFT JOIN LATERAL (
    SELECT payload, content_type, labels, deadline_us FROM execution
    WHERE ready.part < 0 AND execution.shard = ready.shard AND execution.schedule_id = ready.schedule_id
    AND execution.fire_us = ready.fire_us AND execution.part = ready.part OFFSET 0
) AS asked ON TRUE;

-- name: route_entries
-- rows: shard int, priority int, route bigint
-- why: one statement for all routes
SELECT ready.*, asked.* FROM {rows}, LATERAL (
    SELECT shard, schedule_id, fire_us, part, due_us, priority, attempt, failures, job_id, flags, state, losses,
        delivered, cancel, route
    FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1
        AND entry.route = batch.route AND due_us <= :before_us AND NOT cancel
    ORDER BY due_us, schedule_id, fire_us, part LIMIT :limit
) AS ready LEFT JOIN LATERAL (
    SELECT payload, content_type, labels, deadline_us FROM execution
    WHERE ready.part < 0 AND execution.shard = ready.shard AND execution.schedule_id = ready.schedule_id
    AND execution.fire_us = ready.fire_us AND execution.part = ready.part OFFSET 0
) AS asked ON TRUE;

-- name: cancelled_entries
-- rows: shard int
-- why: one statement for all shards
SELECT ended.*, asked.* FROM {rows}, LATERAL (
    SELECT * FROM (
        SELECT shard, schedule_id, fire_us, part, due_us, priority, attempt, failures, job_id, flags, state, losses,
            delivered, cancel, route
        FROM entry WHERE entry.shard = batch.shard AND cancel OFFSET 0
    ) AS found ORDER BY schedule_id, fire_us, part LIMIT :limit
) AS ended LEFT JOIN LATERAL (
    SELECT payload, content_type, labels, deadline_us FROM execution
    WHERE ended.part < 0 AND execution.shard = ended.shard AND execution.schedule_id = ended.schedule_id
    AND execution.fire_us = ended.fire_us AND execution.part = ended.part OFFSET 0
) AS asked ON TRUE;

-- name: open_entries
-- why: the execution is a look-up for each entry
SELECT opened.*, asked.* FROM (
    SELECT shard, schedule_id, fire_us, part, due_us, priority, attempt, failures, job_id, flags, state, losses,
        delivered, cancel, route
    FROM entry WHERE shard = :shard AND (schedule_id, fire_us, part) > (:schedule_id, :fire_us, :part)
        AND (state = 0 OR (state = 1 AND delivered))
    ORDER BY schedule_id, fire_us, part LIMIT :limit
) AS opened LEFT JOIN LATERAL (
    SELECT payload, content_type, labels, deadline_us FROM execution
    WHERE opened.part < 0 AND execution.shard = opened.shard AND execution.schedule_id = opened.schedule_id
    AND execution.fire_us = opened.fire_us AND execution.part = opened.part OFFSET 0
) AS asked ON TRUE
ORDER BY opened.schedule_id, opened.fire_us, opened.part;

-- name: judge_successes
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint, attempt int, started_us bigint, finished_us bigint, executor_id text, result blob, result_type text
-- why: nothing to ask before: write_successes judges under the lock of each entry

-- name: write_successes
-- why: one statement a batch; who waited for an entry's row lock finds it deleted, or its attempt moved on. A row is the
-- number of its place in the columns, each an array, or one value where all rows have the same: what goes between the
-- nodes of the plan is a number instead of ten values, and a column that is the same all along costs nothing. Results
-- differ in length, so the place of one is found by going through those before it: they come in order instead
WITH settled AS (
    DELETE FROM entry USING (
        SELECT generate_series(1, :count::int4) AS place, unnest(:all_result::bytea[]) AS result OFFSET 0
    ) AS batch
    WHERE entry.shard = coalesce((:all_shard::int4[])[place], :one_shard::int4) AND entry.schedule_id = coalesce((:all_schedule_id::int8[])[place], :one_schedule_id::int8)
    AND entry.fire_us = coalesce((:all_fire_us::int8[])[place], :one_fire_us::int8) AND entry.part = coalesce((:all_part::int8[])[place], :one_part::int8)
    AND entry.attempt = coalesce((:all_attempt::int4[])[place], :one_attempt::int4) AND entry.state IN (0, 1)
    RETURNING batch.place, batch.result
), ended AS (
    UPDATE execution SET state = 10, started_us = coalesce((:all_started_us::int8[])[place], :one_started_us::int8),
        finished_us = coalesce((:all_finished_us::int8[])[place], :one_finished_us::int8),
        executor_id = coalesce((:all_executor_id::text[])[place], :one_executor_id::text),
        result = coalesce(settled.result, :one_result::bytea),
        result_type = coalesce((:all_result_type::text[])[place], :one_result_type::text), error = NULL
    FROM settled
    WHERE execution.shard = coalesce((:all_shard::int4[])[place], :one_shard::int4)
    AND execution.schedule_id = coalesce((:all_schedule_id::int8[])[place], :one_schedule_id::int8)
    AND execution.fire_us = coalesce((:all_fire_us::int8[])[place], :one_fire_us::int8) AND execution.part = coalesce((:all_part::int8[])[place], :one_part::int8)
)
SELECT place FROM generate_series(1, :count::int4) AS place
WHERE (SELECT count(*) FROM settled) < :count::int4 AND place NOT IN (SELECT place FROM settled);

-- name: ledger_heads
-- rows: shard int, schedule_id bigint
-- why: one statement for all schedules
SELECT head.* FROM {rows}, LATERAL (
    SELECT shard, schedule_id, first_us, last_us, fires, reason FROM ledger
    WHERE ledger.shard = batch.shard AND ledger.schedule_id = batch.schedule_id
    ORDER BY first_us DESC, last_us DESC, fires DESC, reason DESC LIMIT 1
) AS head;

-- name: last_fires
-- rows: shard int, schedule_id bigint, before_us bigint
-- why: one statement for all schedules
SELECT batch.shard, batch.schedule_id, batch.before_us, fired.fire_us FROM {rows}, LATERAL (
    SELECT fire_us FROM execution
    WHERE execution.shard = batch.shard AND execution.schedule_id = batch.schedule_id
    AND execution.fire_us < batch.before_us AND execution.part >= 0
    ORDER BY execution.fire_us DESC LIMIT 1
) AS fired;

-- name: enqueue
-- rows: shard int, schedule_id bigint, part bigint, fire_us bigint, payload blob, request_key text, delay_us bigint, job_id bigint, state int, entry_state int, priority int, flags int, origin int, content_type text, labels text, deadline_us bigint, namespace text, replay_of text, parent text, route bigint, mark bigint
-- group: delay_us, job_id, state, entry_state, priority, flags, origin, content_type, labels, deadline_us, namespace, replay_of, parent, route, mark
-- why: one statement, so one round trip; the entry comes only with its execution, and both have one clock
WITH batch AS MATERIALIZED (
    SELECT * FROM {rows}
), made AS (
    INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
        created_us, payload, content_type, labels, deadline_us, namespace, request_key, replay_of, parent)
    SELECT shard, schedule_id, coalesce(fire_us, {now_us} + delay_us), part, job_id, state, 1,
        greatest(fire_us, {now_us} + delay_us), priority, flags, origin, {now_us}, payload, content_type, labels,
        deadline_us, namespace, request_key, replay_of, parent
    FROM batch
    ON CONFLICT (shard, schedule_id, fire_us, part) DO NOTHING
    RETURNING part
)
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
SELECT shard, schedule_id, coalesce(fire_us, {now_us} + delay_us), part, job_id, entry_state, 1,
    greatest(fire_us, {now_us} + delay_us), priority, flags, CASE WHEN route <> 0 THEN route
        ELSE (coalesce((SELECT route FROM job WHERE job.job_id = batch.job_id), 0) + mark) & 4611686018427387903 END
FROM batch WHERE (part IN (SELECT part FROM made)) IS TRUE
RETURNING fire_us, part;

-- name: enqueue_new
-- rows: shard int, part bigint, payload blob, job_id bigint, delay_us bigint, priority int, flags int, content_type text, namespace text, route bigint
-- group: job_id, delay_us, priority, flags, content_type, namespace, route
-- why: one statement, and no look for a row of the same key before one is written: that raises a unique violation
WITH made AS (
    INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
        created_us, payload, content_type, namespace)
    SELECT shard, 0, {now_us} + delay_us, part, job_id, 0, 1, {now_us} + delay_us, priority, flags, 1, {now_us},
        payload, content_type, namespace
    FROM {rows}
)
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
SELECT shard, 0, {now_us} + delay_us, part, job_id, 1, 1, {now_us} + delay_us, priority, flags, route
FROM {rows} RETURNING fire_us, part;

-- name: enqueue_named
-- rows: shard int, schedule_id bigint, part bigint, fire_us bigint, payload blob, request_key text, delay_us bigint, job_id bigint, state int, entry_state int, priority int, flags int, origin int, content_type text, labels text, deadline_us bigint, namespace text, replay_of text, parent text, route bigint, mark bigint
-- why: one statement, so one round trip instead of six. Who waited for another's claim of the same key can't see on
-- this snapshot what that one made: there is no answer then, and nothing was written
WITH claimed AS (
    INSERT INTO request_key (namespace, key, shard, schedule_id, fire_us, part)
    SELECT namespace, request_key, shard, schedule_id, coalesce(fire_us, {now_us} + delay_us), part FROM {rows}
    ON CONFLICT (namespace, key) DO NOTHING RETURNING fire_us
), made AS (
    INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
        created_us, payload, content_type, labels, deadline_us, namespace, request_key, replay_of, parent)
    SELECT shard, schedule_id, claimed.fire_us, part, job_id, state, 1, greatest(claimed.fire_us, {now_us} + delay_us),
        priority, flags, origin, {now_us}, payload, content_type, labels, deadline_us, namespace, request_key,
        replay_of, parent
    FROM {rows} CROSS JOIN claimed
    ON CONFLICT (shard, schedule_id, fire_us, part) DO NOTHING
    RETURNING fire_us, due_us
), told AS (
    INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, route)
    SELECT shard, schedule_id, made.fire_us, part, job_id, entry_state, 1, made.due_us, priority, flags,
        CASE WHEN route <> 0 THEN route
        ELSE (coalesce((SELECT route FROM job WHERE job.job_id = batch.job_id), 0) + mark) & 4611686018427387903 END
    FROM {rows} CROSS JOIN made RETURNING part
)
SELECT shard, schedule_id, claimed.fire_us, part, EXISTS (SELECT FROM told) FROM {rows} CROSS JOIN claimed
UNION ALL
SELECT request_key.shard, request_key.schedule_id, request_key.fire_us, request_key.part, FALSE FROM {rows}
JOIN request_key ON request_key.namespace = batch.namespace AND request_key.key = batch.request_key;

-- name: tell_at_commit
-- why: a notification is sent by the commit, and only by that
SELECT pg_notify(:channel, :shards);

-- name: unpark_entries
-- rows: shard int, schedule_id bigint, fire_us bigint, part bigint
-- why: one statement, so one clock
WITH unparked AS (
    UPDATE entry SET state = 1, due_us = {now_us} FROM {rows} WHERE entry.shard = batch.shard
    AND entry.schedule_id = batch.schedule_id AND entry.fire_us = batch.fire_us AND entry.part = batch.part
    RETURNING entry.*
)
UPDATE execution SET state = 0, due_us = unparked.due_us, error = NULL FROM unparked
WHERE execution.shard = unparked.shard AND execution.schedule_id = unparked.schedule_id
AND execution.fire_us = unparked.fire_us AND execution.part = unparked.part;

-- name: count_due_cursors
-- rows: shard int
-- why: one statement for all shards
SELECT counted.* FROM {rows}, LATERAL (
    SELECT count(*), min(due_us) FROM (
        SELECT due_us FROM cursor WHERE cursor.shard = batch.shard AND due_us IS NOT NULL AND due_us <= {now_us}
        ORDER BY due_us LIMIT :most
    ) AS due
) AS counted;

-- name: count_ready_entries
-- rows: shard int, priority int
-- why: one statement for all shards and priorities
SELECT counted.* FROM {rows}, LATERAL (
    SELECT count(*), min(due_us) FROM (
        SELECT due_us FROM entry WHERE entry.shard = batch.shard AND entry.priority = batch.priority AND state = 1
        AND due_us <= {now_us} AND executor_id IS NULL ORDER BY due_us LIMIT :most
    ) AS due
) AS counted;

-- name: insert_schedules
-- rows: schedule_id bigint, shard int, name text, namespace text, owner text, job_id bigint, trigger_id bigint, policy_id bigint, fire_us bigint, due_us bigint
-- group: namespace, owner, job_id, trigger_id, policy_id, fire_us, due_us
-- why: one statement, and what schedules have in common travels once. Cursors go in by their ids, whatever the order of
-- names: those of one due time are read in the order in which they came
WITH batch AS MATERIALIZED (
    SELECT * FROM {rows}
), made AS (
    INSERT INTO schedule (schedule_id, shard, namespace, name, owner, job_id, trigger_id, policy_id, version, state,
        created_us, updated_us)
    SELECT schedule_id, shard, namespace, name, owner, job_id, trigger_id, policy_id, 1, 'active', {now_us}, {now_us}
    FROM batch
    ON CONFLICT (namespace, name) DO NOTHING RETURNING schedule_id
), placed AS (
    INSERT INTO cursor (shard, schedule_id, fire_us, due_us, revision, trigger_id, job_id, policy_id)
    SELECT shard, schedule_id, fire_us, due_us, 0, trigger_id, job_id, policy_id
    FROM batch WHERE schedule_id IN (SELECT schedule_id FROM made)
    ORDER BY schedule_id
)
SELECT schedule_id FROM batch WHERE (SELECT count(*) FROM made) < (SELECT count(*) FROM batch)
EXCEPT SELECT schedule_id FROM made;
