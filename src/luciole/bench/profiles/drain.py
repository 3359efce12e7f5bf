"""One-off executions through to their outcome."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

DRAIN = Profile(
    name="drain",
    question="How many one-off executions does one executor process bring from due to a durable outcome a second?",
    border=(
        "From the instant at which all become due to the moment when the outbox was seen empty: read, delivered over "
        "gRPC, run by a handler that does nothing, reported, settled. The enqueues come before; the history stays."
    ),
    backends=("sqlite", "postgres"),
    phases=("bare", "warm_up", "churn", "fill", "quiesce", "drain", "check"),
    parameters={
        "full": {"jobs": 10_000, "repeats": 5, "slots": 1_000, "payload_bytes": 0, "churn": 50_000},
        "ci": {"jobs": 5_000, "repeats": 3, "slots": 1_000, "payload_bytes": 0, "churn": 10_000},
        "smoke": {"jobs": 1_000, "repeats": 1, "slots": 1_000, "payload_bytes": 0, "churn": 1_000},
    },
    metrics=(
        MetricSpec(
            name="drain_rate",
            unit="jobs/s",
            direction="higher",
            text="N by the time of the border",
            ceiling="bare_pull_rate",
            share="pull_share",
        ),
        MetricSpec(name="drain_us", unit="us", direction="lower", text="the time of the border"),
        MetricSpec(
            name="pull_share",
            unit="ratio",
            direction="higher",
            text="drain_rate by bare_pull_rate of the same repeat",
        ),
        MetricSpec(
            name="bare_pull_rate",
            unit="jobs/s",
            direction="none",
            text="one loop over a plain table, 500 rows a turn: take, then keep as done; two commits",
        ),
        MetricSpec(
            name="enqueue_many_rate",
            unit="jobs/s",
            direction="higher",
            text="the enqueues, in one call of enqueue_many, while nothing else happens",
            ceiling="enqueue_ceiling_rate",
            share="enqueue_many_share",
        ),
        MetricSpec(
            name="enqueue_ceiling_rate",
            unit="jobs/s",
            direction="none",
            text="as many executions and entries, written by the server alone, in the best way tried",
        ),
        MetricSpec(name="node_cpu_us_per_job", unit="us/job", direction="lower", text="CPU time of the node"),
        MetricSpec(name="executor_cpu_us_per_job", unit="us/job", direction="lower", text="… of the executor"),
        MetricSpec(name="server_cpu_us_per_job", unit="us/job", direction="lower", text="… of the database server"),
        MetricSpec(
            name="commits_per_job",
            unit="commits/job",
            direction="lower",
            text="commits of the server, those of idle loops and of the look for the end among them",
        ),
        MetricSpec(
            name="wal_bytes_per_job",
            unit="bytes/job",
            direction="lower",
            text="write-ahead log without full-page images",
        ),
        MetricSpec(
            name="dead_rows",
            unit="rows",
            direction="none",
            text="dead rows of the outbox right before, which a vacuum left; beside a forgotten transaction",
        ),
    ),
    invariants=("I5", "I6", "I9", "I11"),
    limits_of_inference=(
        "Node, executor, enqueuer and database share one machine; loopback instead of a network.",
        "A handler that does nothing: what is left is the cost of running it.",
    ),
    under_load=True,
)
