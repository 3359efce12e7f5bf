"""What is overdue when nodes come back."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.profiles.steady import USE_METRICS
from luciole.bench.result import MetricSpec

BACKLOG = Profile(
    name="backlog",
    question="Nodes come back to many overdue schedules: how soon are they caught up, and does what is new wait?",
    border=(
        "Ten fire times of each schedule pass while no node runs; a third each fire once, are skipped, and catch up "
        "three. From the start of the node's process until nothing that is due for a second is unplanned or open."
    ),
    backends=("sqlite", "postgres"),
    phases=("register", "start", "catch_up", "check"),
    parameters={
        "full": {"overdue": 100_000, "fresh_rate": 100, "fresh_s": 60, "repeats": 3},
        "ci": {"overdue": 12_000, "fresh_rate": 50, "fresh_s": 20, "repeats": 1},
        "smoke": {"overdue": 300, "fresh_rate": 10, "fresh_s": 10, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="catch_up_us", unit="us", direction="lower", text="from the start of the nodes"),
        MetricSpec(
            name="ready_us", unit="us", direction="none", text="of it, until shards are held and executors there"
        ),
        MetricSpec(name="fresh_lag", unit="us", direction="lower", text="due to started, of new fires meanwhile (p99)"),
        MetricSpec(
            name="decided_rate",
            unit="fires/s",
            direction="higher",
            text="missed fire times given an outcome",
            ceiling="decided_ceiling_rate",
            share="decided_share",
        ),
        MetricSpec(
            name="late_runs_rate",
            unit="starts/s",
            direction="higher",
            text="overdue executions started",
            ceiling="late_runs_ceiling_rate",
            share="late_runs_share",
        ),
        MetricSpec(
            name="late_runs_ceiling_rate",
            unit="starts/s",
            direction="none",
            text="executions planned and settled by the server alone, one after the other, in the best way tried",
        ),
        MetricSpec(
            name="decided_ceiling_rate",
            unit="fires/s",
            direction="none",
            text="the same, with the fire times that are skipped beside each run",
        ),
        *(one for one in USE_METRICS if not one.name.endswith(("cpu_us", "per_execution"))),
    ),
    invariants=("I1", "I2", "I4", "I5", "I6", "I11"),
    limits_of_inference=(
        "One machine holds database, nodes and executors: they compete for its cores.",
        "Handlers that end at once: slow ones would make slots the limit.",
        "The start of Python is part of the time until nodes are ready.",
    ),
)
