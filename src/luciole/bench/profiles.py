"""The profiles as data: each asks one question and draws the border of its figures."""

from typing import Any, Literal

import msgspec

from luciole.bench.micro import MICROS
from luciole.bench.result import MetricSpec
from luciole.bench.verdict import Usage

Size = Literal["full", "ci", "smoke"]
SIZES: tuple[Size, ...] = ("full", "ci", "smoke")


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One profile."""

    name: str
    question: str
    border: str  #: what its figures include, and what not
    backends: tuple[str, ...]
    phases: tuple[str, ...]
    parameters: dict[Size, dict[str, Any]]
    metrics: tuple[MetricSpec, ...]
    invariants: tuple[str, ...]
    limits_of_inference: tuple[str, ...]

    def metric(self, name: str) -> MetricSpec:
        """Return one of its metrics.

        Raises:
            Usage: it has none of this name.
        """
        for one in self.metrics:
            if one.name == name:
                return one
        raise Usage(f"profile {self.name}: it has no metric {name!r}")


_BURST_METRICS = (
    MetricSpec(
        name="drain_rate",
        unit="jobs/s",
        direction="higher",
        text="N by the time from T to the last commit that returned; registration is no part of it",
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
    ),
    MetricSpec(
        name="settle_rate",
        unit="jobs/s",
        direction="higher",
        text="N by the time that the reporters took to close the outbox",
    ),
    MetricSpec(
        name="register_rate",
        unit="schedules/s",
        direction="higher",
        text="bulk registration through the use case that an app's declaration goes through",
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

MICRO = Profile(
    name="micro",
    question="What does a single step cost, and is the optimisation that made it cheap still there?",
    border="One step in one process, warm; nothing is stored.",
    backends=(),
    phases=("measure",),
    parameters={"full": {"repeats": 5}, "ci": {"repeats": 3}, "smoke": {"repeats": 1}},
    metrics=tuple(
        MetricSpec(name=micro.name, unit="us", direction="lower", text=f"guards: {micro.guards}") for micro in MICROS
    ),
    invariants=(),
    limits_of_inference=("A warm step on this CPU; ratios carry over to others, microseconds do not.",),
)

SQL_CEILING = Profile(
    name="sql-ceiling",
    question="How fast does the server alone write the rows of a burst?",
    border=(
        "Cursor update, execution insert and entry insert with fence check and overlap probe, in the product's "
        "schema and at its durability; the best over batch sizes and connections, with the plan pinned."
    ),
    backends=("sqlite", "postgres"),
    phases=("measure",),
    parameters={
        "full": {"jobs": 50_000, "repeats": 5, "ceiling": "full"},
        "ci": {"jobs": 10_000, "repeats": 3, "ceiling": "short"},
        "smoke": {"jobs": 5_000, "repeats": 1, "ceiling": "short"},
    },
    metrics=(
        MetricSpec(name="ceiling_rate", unit="jobs/s", direction="higher", text="the best setting of each repeat"),
    ),
    invariants=(),
    limits_of_inference=("What a burst could reach at most here, if planning cost nothing.",),
)

PICKUP = Profile(
    name="pickup",
    question="How long does a single enqueue take to the start of its handler when nothing else happens?",
    border=(
        "From the call of `enqueue` to the first line of the handler, by one monotonic clock; one at a time. On SQLite "
        "in one process; on PostgreSQL the enqueuer knows only the DSN, and the executor is a process behind gRPC."
    ),
    backends=("sqlite", "postgres"),
    phases=("enqueue", "check"),
    parameters={
        "full": {"jobs": 2_000, "repeats": 5},
        "ci": {"jobs": 500, "repeats": 2},
        "smoke": {"jobs": 100, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="start_lag", unit="us", direction="lower", text="enqueue called to handler started (p99)"),
        MetricSpec(name="enqueue_time", unit="us", direction="lower", text="the enqueue alone, durable (p99)"),
    ),
    invariants=("I5", "I6", "I9"),
    limits_of_inference=(
        "Loopback: a network adds one way to the database, one to the node and one to the executor.",
        "Idle: under load a start also waits for what is before it.",
    ),
)

REGISTER = Profile(
    name="register",
    question="How many schedules are registered a second, in bulk and one by one?",
    border="From the call of the use case to its answer, triggers evaluated, everything durable; one client.",
    backends=("sqlite", "postgres"),
    phases=("single", "bulk", "again", "check"),
    parameters={
        "full": {"jobs": 50_000, "singles": 300, "repeats": 5},
        "ci": {"jobs": 10_000, "singles": 100, "repeats": 2},
        "smoke": {"jobs": 2_000, "singles": 50, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="bulk_rate", unit="schedules/s", direction="higher", text="new ones, in bulk"),
        MetricSpec(name="again_rate", unit="schedules/s", direction="higher", text="the same again, nothing changed"),
        MetricSpec(name="changed_again", unit="schedules", direction="zero", text="written although nothing changed"),
        MetricSpec(name="bulk_cpu_us", unit="us/schedule", direction="lower", text="CPU time of the client"),
        MetricSpec(
            name="single_time",
            unit="us",
            direction="lower",
            text="one alone into a nearly empty store, start to durable (p99)",
        ),
    ),
    invariants=("I9",),
    limits_of_inference=("24 triggers and one job among all schedules, as apps have.",),
)

IDLE = Profile(
    name="idle",
    question="What does it cost to wait?",
    border=(
        "CPU time of all processes and statements of the server while every schedule is at least a day away; an "
        "executor is connected."
    ),
    backends=("sqlite", "postgres"),
    phases=("idle", "check"),
    parameters={
        "full": {"jobs": 100_000, "duration_s": 20, "repeats": 3},
        "ci": {"jobs": 20_000, "duration_s": 10, "repeats": 1},
        "smoke": {"jobs": 1_000, "duration_s": 3, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="core_share", unit="cores", direction="lower", text="node, executor and server together"),
        MetricSpec(name="node_share", unit="cores", direction="lower", text="the node (on SQLite: the whole app)"),
        MetricSpec(name="executor_share", unit="cores", direction="lower", text="the executor"),
        MetricSpec(name="server_share", unit="cores", direction="lower", text="the database server"),
        MetricSpec(name="queries", unit="statements/s", direction="lower", text="as the server counts them"),
        MetricSpec(name="commits", unit="commits/s", direction="lower", text="as the server counts them"),
    ),
    invariants=(),
    limits_of_inference=("One node and one executor; each further node adds its heartbeat.",),
)

CHAOS = Profile(
    name="chaos",
    question="Nodes and executors die or freeze under load: how soon does the work go on, and is all of it right?",
    border=(
        "From the store's time just before the signal: `recovery` to the first execution that each shard of the node "
        "creates elsewhere, `redelivery` to the start of the last attempt that replaces a lost one."
    ),
    backends=("postgres",),
    phases=("node_kills", "executor_kills", "freezes", "end", "check"),
    parameters={
        "full": {"rate": 500, "node_kills": 20, "executor_kills": 5, "freezes": 2, "repeats": 1},
        "ci": {"rate": 200, "node_kills": 4, "executor_kills": 2, "freezes": 1, "repeats": 1},
        "smoke": {"rate": 100, "node_kills": 1, "executor_kills": 1, "freezes": 0, "repeats": 1},
    },
    metrics=(
        MetricSpec(
            name="recovery", unit="us", direction="lower", text="a shard of a dead or frozen node fires elsewhere"
        ),
        MetricSpec(name="recovery_max_us", unit="us", direction="lower", text="the longest of all shards and faults"),
        MetricSpec(name="redelivery", unit="us", direction="lower", text="one value a kill: its last redelivery"),
        MetricSpec(name="redelivery_max_us", unit="us", direction="lower", text="the longest of all kills"),
        MetricSpec(name="executions", unit="executions", direction="none", text="in the whole repeat"),
        MetricSpec(name="attempts_lost", unit="attempts", direction="none", text="with executors that were killed"),
        MetricSpec(
            name="stale_writes_with_deadline",
            unit="shards",
            direction="zero",
            text="sent by frozen nodes that check their own deadline: on their way already, and refused by the fence",
        ),
        MetricSpec(
            name="stale_writes_refused",
            unit="shards",
            direction="none",
            text="by the fence alone, from nodes whose own deadline check is off",
        ),
    ),
    invariants=("I1", "I2", "I3", "I4", "I5", "I6"),
    limits_of_inference=(
        "SIGKILL and SIGSTOP of processes: the machine, its disk and the server stay up.",
        "Two nodes and two executors on one machine; defaults for all time-outs.",
    ),
)

_ALL = (BURST, REGISTER, PICKUP, IDLE, CHAOS, MICRO, SQL_CEILING)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in _ALL}


def find_profile(name: str) -> Profile:
    """Return a profile by its name.

    Raises:
        Usage: there is none; the message names those that there are.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise Usage(f"profile {name!r}: there is none; choose from {', '.join(PROFILES)}") from None
