"""Many schedules that are due at one instant."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

_BURST_METRICS = (
    MetricSpec(
        name="drain_rate",
        unit="jobs/s",
        direction="higher",
        text="N by the time from T to the last commit that returned; registration is no part of it",
        ceiling="sql_ceiling_rate",
        share="ceiling_share",
    ),
    MetricSpec(name="drain_us", unit="us", direction="lower", text="from T to the last commit that returned"),
    MetricSpec(
        name="ceiling_share",
        unit="ratio",
        direction="higher",
        text="drain_rate by the rate at which the server alone writes the same rows, measured beside this repeat",
    ),
    MetricSpec(
        name="end_to_end_rate",
        unit="jobs/s",
        direction="higher",
        text="N by the sum of drain and settling",
        ceiling="end_to_end_ceiling_rate",
        share="end_to_end_share",
    ),
    MetricSpec(
        name="settle_rate",
        unit="jobs/s",
        direction="higher",
        text="N by the time that the reporters took to close the outbox",
        ceiling="settle_ceiling_rate",
        share="settle_share",
    ),
    MetricSpec(
        name="register_rate",
        unit="schedules/s",
        direction="higher",
        text="bulk registration through the use case that an app's declaration goes through",
        ceiling="register_ceiling_rate",
        share="register_share",
    ),
    MetricSpec(
        name="sql_ceiling_rate",
        unit="jobs/s",
        direction="none",
        text="the burst's own rows written by the server alone, measured beside this repeat",
    ),
    MetricSpec(
        name="settle_ceiling_rate",
        unit="jobs/s",
        direction="none",
        text="as many executions ended and entries deleted by the server alone, in the best way tried",
    ),
    MetricSpec(
        name="register_ceiling_rate",
        unit="schedules/s",
        direction="none",
        text="as many schedules and cursors, written by the server alone, in the best way tried",
    ),
    MetricSpec(
        name="end_to_end_ceiling_rate",
        unit="jobs/s",
        direction="none",
        text="the server alone, both works one after the other",
    ),
    MetricSpec(
        name="fire_lag",
        unit="us",
        direction="lower",
        text="commit of the execution returned, minus due time; no network to executors, no handler",
    ),
    MetricSpec(
        name="decide_lag",
        unit="us",
        direction="lower",
        text="the planner's decision minus due time",
    ),
    MetricSpec(name="commit_time", unit="us", direction="none", text="one chunk's transaction, asked to answered"),
    MetricSpec(name="settle_lag", unit="us", direction="lower", text="duration of one batch of reports"),
    MetricSpec(
        name="commits_per_job",
        unit="commits/job",
        direction="lower",
        text="commits of the server from T to the closed outbox",
    ),
    MetricSpec(
        name="statements_per_job",
        unit="statements/job",
        direction="lower",
        text="statements that the server counted from T to the closed outbox",
    ),
    MetricSpec(
        name="verbs_per_job",
        unit="calls/job",
        direction="lower",
        text="calls of store verbs from T to the closed outbox",
    ),
    MetricSpec(
        name="wal_bytes_per_job",
        unit="bytes/job",
        direction="lower",
        text="write-ahead log from T to the closed outbox, without full-page images",
    ),
    MetricSpec(
        name="wal_image_bytes_per_job",
        unit="bytes/job",
        direction="none",
        text="full-page images in the write-ahead log: they depend on the last checkpoint",
    ),
    MetricSpec(
        name="written_bytes_per_job",
        unit="bytes/job",
        direction="lower",
        text="bytes that the processes handed to the filesystem from T to the closed outbox",
    ),
    MetricSpec(
        name="client_cpu_us_per_job",
        unit="us/job",
        direction="lower",
        text="CPU time of the schedulers from T to the closed outbox",
    ),
    MetricSpec(
        name="server_cpu_us_per_job",
        unit="us/job",
        direction="lower",
        text="CPU time of the database server from T to the closed outbox",
    ),
    MetricSpec(
        name="client_drain_cpu_us_per_job",
        unit="us/job",
        direction="lower",
        text="CPU time of the schedulers from T to the last commit",
    ),
    MetricSpec(
        name="server_drain_cpu_us_per_job",
        unit="us/job",
        direction="lower",
        text="CPU time of the database server from T to the last commit",
    ),
    MetricSpec(
        name="lost_races",
        unit="moves",
        direction="none",
        text="moves that another planner had made first, refused by compare-and-set",
    ),
    MetricSpec(
        name="stale_attempts",
        unit="moves",
        direction="none",
        text="moves under an outdated fence that were sent, so that their refusal is seen",
    ),
    MetricSpec(
        name="take_overs",
        unit="shards",
        direction="none",
        text="shards that changed hands in the middle of the burst",
    ),
    MetricSpec(name="kills", unit="processes", direction="none", text="schedulers killed in the middle of the burst"),
    MetricSpec(
        name="zombie_plans",
        unit="shards",
        direction="none",
        text="refused by the fence: plans of former holders that never check their own deadline",
    ),
    MetricSpec(
        name="zombie_deliveries",
        unit="deliveries",
        direction="none",
        text="deliveries that former holders tried to record under their outdated fences",
    ),
    MetricSpec(
        name="zombie_accepted",
        unit="writes",
        direction="zero",
        text="writes of former holders that the store took",
    ),
)

BURST = Profile(
    name="burst",
    question="How many schedules that are due at one instant become durable executions a second?",
    border=(
        "From T to the commit that made the last execution and its outbox entry durable; then, apart, until each "
        "has its recorded outcome. No executor and no handler takes part."
    ),
    backends=("sqlite", "postgres"),
    phases=(
        "ceiling",
        "register",
        "lease",
        "take_over",
        "warm_up",
        "quiesce",
        "reschedule",
        "assert_nothing_due",
        "refuse_stale",
        "drain",
        "settle",
        "release",
        "check",
        "clean_up",
    ),
    parameters={
        "full": {"jobs": 50_000, "warm_up_jobs": 2_000, "repeats": 5, "ceiling": "full"},
        "ci": {"jobs": 10_000, "warm_up_jobs": 1_000, "repeats": 3, "ceiling": "short"},
        "smoke": {"jobs": 5_000, "warm_up_jobs": 500, "repeats": 1, "ceiling": "short"},
    },
    metrics=_BURST_METRICS,
    invariants=("I1", "I2", "I3", "I4", "I5", "I6"),
    limits_of_inference=(
        "One machine holds database and schedulers: they compete for its cores.",
        "Loopback: a network between them adds its round trips to every chunk.",
        "Schedules share 24 triggers; more distinct ones cost one evaluation each, see the micro profile.",
    ),
)
