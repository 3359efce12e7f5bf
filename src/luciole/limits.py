"""Every bound of the product in one place (I10). Names carry their unit last."""

from typing import Final

MS_US: Final = 1_000
SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

#: Instants that the product accepts: years 1900 to 2200.
INSTANT_MIN_US: Final = -2_208_988_800 * SECOND_US
INSTANT_MAX_US: Final = 7_258_118_400 * SECOND_US

SHARDS_DEFAULT: Final = 32
SHARDS_MAX: Final = 4_096

NAME_LENGTH_MAX: Final = 200
KEY_LENGTH_MAX: Final = 400
LABELS_MAX: Final = 32
PAYLOAD_BYTES_MAX: Final = 1_048_576
RESULT_BYTES_MAX: Final = 1_048_576
ERROR_TEXT_LENGTH_MAX: Final = 8_192
PROGRESS_LENGTH_MAX: Final = 1_000
#: Characters of progress in one heartbeat, which can't be split.
PROGRESS_ROOM: Final = 1_000_000

#: Handlers that one executor knows.
HANDLERS_MAX: Final = 10_000
#: Reports that wait for confirmation before an executor asks for no more work.
UNCONFIRMED_MAX: Final = 10_000
#: One frame of the executor protocol; more is split over several.
FRAME_BYTES_MAX: Final = 8 * 1_048_576
#: Payloads or results that a session sends in one go, unless a single one is larger: what a heartbeat or its answer
#: waits for at most: 0.9 s on a line of 10 Mbit/s, of the 6.4 s that a session lives.
SEND_BYTES_MAX: Final = 1_048_576
#: Payloads of so many bytes that are equal are sent once in a frame; smaller ones are, too, whatever this says.
SHARED_BYTES_MIN: Final = 512
FRAME_MESSAGES_MAX: Final = 10_000
FRAME_ATTEMPTS_MAX: Final = 200_000
#: A ping on an idle connection, and how long its answer may take.
KEEPALIVE_PAUSE_US: Final = 5 * SECOND_US
KEEPALIVE_TIMEOUT_US: Final = 3 * SECOND_US
PORT_MAX: Final = 65_535
#: What an async handler gets to end after it was cancelled, before its outcome is reported without it.
CANCEL_GRACE_US: Final = 5 * SECOND_US
#: What a draining executor waits for nodes to confirm its last reports.
CONFIRM_GRACE_US: Final = 5 * SECOND_US
CONNECT_TIMEOUT_US: Final = 5 * SECOND_US
#: Threads and processes that one executor starts for its handlers.
THREADS_MAX: Final = 1_024
PROCESSES_MAX: Final = 1_024
#: What a process gets to end after it has closed its pipe.
PROCESS_EXIT_GRACE_US: Final = 1 * SECOND_US
#: Starts of a process that fail in a row before what waits for one fails.
PROCESS_STARTS_MAX: Final = 5

CRON_LENGTH_MAX: Final = 256
#: The canonical text of a trigger: an expression with its zone, bounds and policies.
TRIGGER_LENGTH_MAX: Final = 2_048

#: A segment of ids that a client takes at once; a bulk takes as many as it needs.
ID_SEGMENT: Final = 1_024
ID_SEGMENT_MAX: Final = 1_000_000

#: So many neighbouring request ids share a shard.
REQUEST_RUN: Final = 16

#: A lost row of ids is restored so far beyond the greatest id in use: programs still have segments of it.
REPAIR_ID_GAP: Final = 1_000_000_000

DUE_MAX: Final = 10_000
#: Due cursors that a planner looks at before it knows whether there is a burst.
PLAN_LOOK_MAX: Final = 1_000
#: Cursors that a group must have on average, or they are planned one by one.
STRIDE_GAIN_MIN: Final = 4
PLAN_BATCH_MIN: Final = 200
PLAN_BATCH_MAX: Final = 2_000
CATCH_UP_MAX: Final = 1_000  # fits the 10 bits of a packed policy
ENQUEUE_BATCH_MAX: Final = 1_000
#: Requests of one client that wait for their statement; further callers wait for room.
ENQUEUE_QUEUE_MAX: Final = 10_000
REPORT_BATCH_MAX: Final = 1_000
DELIVER_BATCH_MAX: Final = 500
REGISTER_BATCH_MAX: Final = 1000
#: Schedules that one transaction moves to another instant.
RESCHEDULE_BATCH_MAX: Final = 5_000
PRUNE_BATCH_MAX: Final = 1_000
PAGE_MAX: Final = 1_000

#: Open entries that a holder keeps in memory for one shard; the rest stay `ready` in the store.
HELD_MAX: Final = 4_096

ATTEMPTS_MAX: Final = 1_000
LOSSES_MAX_DEFAULT: Final = 3
PRIORITY_MIN: Final = 0
PRIORITY_DEFAULT: Final = 5
PRIORITY_MAX: Final = 9

#: A retried database conflict (40001, 40P01, 1213, 1205, SQLITE_BUSY) is tried this many times.
CONFLICT_TRIES_MAX: Final = 8

SLOTS_MAX: Final = 100_000
SESSIONS_MAX: Final = 10_000
NODES_MAX: Final = 1_000

#: Frames that wait in one direction of an in-process connection before its sender waits.
LOCAL_FRAMES_MAX: Final = 64

#: One transaction on SQLite: a longer one would keep other processes out.
SQLITE_TRANSACTION_MAX_US: Final = 50 * MS_US
#: A process that wants to write waits so long for the others, in spread pauses that double.
SQLITE_BUSY_US: Final = 5 * SECOND_US
SQLITE_BUSY_TRIES_MAX: Final = 2_000
SQLITE_BUSY_PAUSE_MIN_US: Final = 200
SQLITE_BUSY_PAUSE_MAX_US: Final = 10 * MS_US
#: How often somebody who waits for a hint looks whether another process has committed. Each look wakes the process: 100
#: a second would cost a hundredth of a core.
SQLITE_POLL_US: Final = 20 * MS_US
SQLITE_CACHE_BYTES: Final = 64 * 1_048_576
SQLITE_CHECKPOINT_PAGES: Final = 4_000
SQLITE_WAL_KEPT_BYTES: Final = 64 * 1_048_576

ZONE_LENGTH_MAX: Final = 64
DURATION_LENGTH_MAX: Final = 64
INTERVAL_MIN_US: Final = MS_US
DURATION_MAX_US: Final = 36_600 * DAY_US
CALENDAR_MONTHS_MAX: Final = 1_200
CALENDAR_DAYS_MAX: Final = 36_600
EXPLAINED_MAX: Final = 1_000

#: What is kept of job options as text, of packed policies and of numbers of routes: an app has few of each.
JOB_OPTIONS_KEPT: Final = 1_024
ROUTE_NUMBERS_KEPT: Final = 1_024
POLICIES_KEPT: Final = 1_024

#: What the trigger caches keep: parsed triggers, expressions, fields; zones with their policies; next fires.
TRIGGERS_KEPT: Final = 16_384
CRON_WALLS_KEPT: Final = 4_096
CRON_FIELDS_KEPT: Final = 1_024
TIMELINES_KEPT: Final = 2_048
NEXT_FIRES_KEPT: Final = 65_536

#: Connections that one process opens to PostgreSQL for each purpose, when it needs them; the heartbeat has one of its
#: own, and so have hints.
POSTGRES_PLAN_CONNECTIONS_MAX: Final = 4
POSTGRES_SETTLE_CONNECTIONS_MAX: Final = 2
POSTGRES_ENQUEUE_CONNECTIONS_MAX: Final = 2
POSTGRES_CATALOG_CONNECTIONS_MAX: Final = 2
POSTGRES_READ_CONNECTIONS_MAX: Final = 2
#: What the server is told of them: all below the least time to live of a lease, but for the last.
POSTGRES_IDLE_IN_TRANSACTION_US: Final = 2 * SECOND_US
POSTGRES_LOCK_US: Final = 2 * SECOND_US
POSTGRES_STATEMENT_US: Final = 30 * SECOND_US
#: A transaction that takes longer on our side has lost its connection: the heartbeat's, those that find all by key,
#: all others.
POSTGRES_LEASE_COMMAND_US: Final = 4 * SECOND_US
POSTGRES_HOT_COMMAND_US: Final = 15 * SECOND_US
POSTGRES_COMMAND_US: Final = 40 * SECOND_US
#: How often the connection for hints is asked whether it is still there.
POSTGRES_LISTEN_CHECK_US: Final = 10 * SECOND_US
POSTGRES_CONNECT_US: Final = 5 * SECOND_US
#: The shortest time between two notifications of one process, and the longest list of shards that fits into one.
POSTGRES_NOTIFY_US: Final = 5 * MS_US
HINT_LENGTH_MAX: Final = 7_900
#: Migrations wait so long for those of another process.
POSTGRES_MIGRATE_US: Final = 10 * MINUTE_US
#: Pauses before a transaction that lost a race, or a lost connection, is tried again: they double from the first.
POSTGRES_PAUSE_MIN_US: Final = MS_US
POSTGRES_CONFLICT_PAUSE_MAX_US: Final = 200 * MS_US
POSTGRES_RECONNECT_MAX_US: Final = 2 * SECOND_US
#: A transaction that is older than this keeps dead rows from being cleared away for too long.
POSTGRES_OLD_TRANSACTION_US: Final = MINUTE_US

#: What a loop sleeps at most: whatever wakes it may get lost.
IDLE_PAUSE_MAX_US: Final = 500 * MS_US
#: The same for loops that wait for nothing outside their process.
LOCAL_PAUSE_MAX_US: Final = 5 * SECOND_US
#: What a tick with nothing to do asks for; its loop grants less.
REST_US: Final = 1 * DAY_US
#: Failed ticks in a row before a loop counts as failing.
LOOP_FAILURES_MAX: Final = 10

#: Further apart than this, host and store are not believed to live in the same hour.
CLOCK_SKEW_MAX_US: Final = 5 * MINUTE_US
#: A move of the store's clock that is reported.
CLOCK_JUMP_US: Final = 1 * SECOND_US
CLOCK_SAMPLES: Final = 8
#: Heartbeats from one question for the store's clock alone to the next: fewer than the samples, so that one counts.
CLOCK_ASK_BEATS: Final = 4

TELEMETRY_WINDOW_US: Final = 10 * SECOND_US

#: Failed attempts that an executor logs in one window, before it only counts them.
FAILURES_LOGGED_MAX: Final = 20
FAILURES_WINDOW_US: Final = 1 * SECOND_US

#: A node whose clock is ahead of the store's may take what is ready for due; what is due later than this is nowhere
#: under way yet, so its end needs nobody's leave.
CANCEL_MARGIN_US: Final = 250 * MS_US

#: An attempt that came back for an unknown handler is offered again after this pause.
UNKNOWN_HANDLER_PAUSE_US: Final = 1 * SECOND_US
#: A handler may put its next attempt off by at most this.
RETRY_DELAY_MAX_US: Final = 366 * DAY_US

#: A lane of the planner reads its shards again this many times before the tick ends.
PLAN_ROUNDS_MAX: Final = 8
#: Plan chunks grow and shrink towards this duration of a commit.
PLAN_COMMIT_TARGET_US: Final = 50 * MS_US
#: Schedules that failed alone and are not yet parked.
SUSPECTS_MAX: Final = 1_000

#: Reports that wait in a node before it stops reading its sessions.
REPORT_QUEUE_MAX: Final = 20_000
#: A second settle call begins beside one that is under way when so many reports wait, or when that one takes so long.
REPORT_COMPANY_MIN: Final = 250
REPORT_COMPANY_US: Final = 50 * MS_US
#: Results that one settle call carries at most, in bytes, but for the last.
REPORT_BYTES_MAX: Final = 8 * 1_048_576
#: An outcome that the store can't take for an unknown reason is tried so often before it is replaced by a failure.
SURPRISES_MAX: Final = 3
#: A next attempt due within this time stays in memory; a later one is found by polling.
RETRY_KEPT_US: Final = 5 * SECOND_US
#: Fewer ready entries of a shard in memory than this, and polling looks for more.
READY_LOW: Final = 128
#: Ready entries of a shard that polling fetches beyond those in memory.
READY_REFILL: Final = 512
#: Ready entries of a well-filled shard that polling looks at, for a higher priority.
READY_PEEK: Final = 32
#: Routes of a shard and priority that one look behind a backlog tells apart; the next look goes on behind them.
ROUTES_MAX: Final = 64
#: Entries of each such route that it fetches at least (fewer routes share what polling fetches), and that memory takes
#: while no executor has room for them.
ROUTE_REFILL_MIN: Final = 16
#: Routes that a node knows by their numbers.
ROUTES_KEPT: Final = 16_384
#: Job versions that a node keeps at hand, by count and by bytes of payload; and how many it reads at once.
JOBS_KEPT: Final = 65_536
JOB_BYTES_KEPT: Final = 64 * 1_048_576
JOBS_READ_MAX: Final = 1_000
#: A handler that no executor knows for so long is not coming with the next restart.
UNKNOWN_HANDLER_GRACE_US: Final = 30 * SECOND_US
#: The pruner's rest between two pages, and between two walks through its shards.
PRUNE_PAGE_PAUSE_US: Final = 100 * MS_US
PRUNE_WALK_PAUSE_US: Final = 10 * MINUTE_US

#: Told nothing for so long, a node and an executor give their session up.
SESSION_TTL_US: Final = 6_400 * MS_US
SESSION_WATCHES: Final = 20
#: Heartbeats in that time. What is left of it after one, at the least, has to outlast a take-over of a dead node's
#: shards (its lease, and what its successor takes to hear what runs), or runs are ended that would have been kept; and
#: all of it with the time to come back is what a silent host's runs wait for: under ten seconds.
SESSION_BEATS: Final = 4
#: A connection that has not introduced itself by then is closed.
HELLO_WAIT_US: Final = 10 * SECOND_US
#: An executor whose session broke has so long to come back before its attempts are taken back.
RECONNECT_GRACE_US: Final = 3 * SECOND_US
#: An executor tries the address of a node for so long after anybody has told of it.
PEER_KEPT_US: Final = 10 * MINUTE_US
#: Executors have so long to tell a shard's new holder what they run.
TAKE_OVER_GRACE_US: Final = 3 * SECOND_US
#: A run that lasts this long is put on record as running.
RUN_MARKED_AFTER_US: Final = 1 * SECOND_US
#: Polls, and passes of the planner, for what comes due close together are at least so far apart.
POLL_PAUSE_MIN_US: Final = 5 * MS_US
PLAN_PAUSE_MIN_US: Final = 10 * MS_US
#: A pass of the planner that took long is followed by a pause as long as itself, up to this.
PLAN_PAUSE_LOADED_US: Final = 40 * MS_US
#: What ripens in one go, before the first of it is delivered.
RIPEN_MAX: Final = 2_000
#: How often a planner that plans ahead looks again at more than it can read and must not plan yet.
PLAN_WAIT_US: Final = 50 * MS_US
#: How long one wait for a hint of the store lasts; and how often hints wake the planner at most.
HINT_WAIT_US: Final = 5 * SECOND_US
PLAN_HINT_PAUSE_US: Final = 50 * MS_US
#: How often a node counts what is due and open, for its telemetry.
BACKLOG_PAUSE_US: Final = 10 * SECOND_US
#: How often the event loop is asked whether it is stalled.
STALL_LOOKS: Final = 12
#: What a tick under way gets to end when its loop is stopped; and how often a drain looks.
LOOP_STOP_GRACE_US: Final = 5 * SECOND_US
PART_STOP_GRACE_US: Final = 10 * SECOND_US
DRAIN_LOOK_US: Final = 20 * MS_US
#: Schedules may be planned so long before they are due.
PLAN_AHEAD_MAX_US: Final = 5 * SECOND_US
#: A shard that was given up may be gone on with for so long, when nobody held it meanwhile.
SUSPENDED_MAX_US: Final = 1 * MINUTE_US
