"""Schedules that fire all the time, on real executors."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

#: What all profiles of this family say about cost and use.
USE_METRICS = (
    MetricSpec(name="cpu_us", unit="us/execution", direction="lower", text="CPU of all parts for one execution"),
    MetricSpec(name="node_cpu_us", unit="us/execution", direction="lower", text="CPU of the nodes"),
    MetricSpec(name="database_cpu_us", unit="us/execution", direction="lower", text="CPU of the database server"),
    MetricSpec(name="executor_cpu_us", unit="us/execution", direction="lower", text="CPU of the executors"),
    MetricSpec(name="commits_per_execution", unit="commits", direction="lower", text="as the server counts them"),
    MetricSpec(name="statements_per_execution", unit="statements", direction="lower", text="as the server counts them"),
    MetricSpec(
        name="wal_bytes_per_execution", unit="bytes", direction="lower", text="write-ahead log, without page images"
    ),
    MetricSpec(name="cores", unit="cores", direction="lower", text="all parts together, mean"),
    MetricSpec(name="node_cores", unit="cores", direction="lower", text="the nodes, mean"),
    MetricSpec(name="node_cores_peak", unit="cores", direction="lower", text="the nodes, the most of 5 s"),
    MetricSpec(name="database_cores", unit="cores", direction="lower", text="the database server, mean"),
    MetricSpec(name="database_cores_peak", unit="cores", direction="lower", text="the same, the most of 5 s"),
    MetricSpec(name="executor_cores", unit="cores", direction="lower", text="the executors, mean"),
    MetricSpec(name="executor_cores_peak", unit="cores", direction="lower", text="the executors, the most of 5 s"),
    MetricSpec(name="node_rss_mib", unit="MiB", direction="lower", text="memory of the nodes, the most"),
    MetricSpec(name="database_rss_mib", unit="MiB", direction="lower", text="memory of the server, unshared, the most"),
    MetricSpec(name="executor_rss_mib", unit="MiB", direction="lower", text="memory of the executors, the most"),
    MetricSpec(name="iops", unit="1/s", direction="lower", text="reads and writes of the data's device, mean"),
    MetricSpec(name="iops_peak_5s", unit="1/s", direction="lower", text="the same, the most of 5 s"),
    MetricSpec(name="iops_peak_30s", unit="1/s", direction="lower", text="the same, the most of 30 s"),
    MetricSpec(name="wal_bytes_per_s", unit="bytes/s", direction="lower", text="write-ahead log, mean"),
    MetricSpec(name="wal_bytes_per_s_peak", unit="bytes/s", direction="lower", text="the same, the most of 5 s"),
    MetricSpec(name="open_max", unit="executions", direction="lower", text="open at once, the most of all looks"),
    MetricSpec(name="oldest_max_us", unit="us", direction="lower", text="the longest that an open one had been due"),
)

STEADY = Profile(
    name="steady",
    question="Do so many schedules start on time, period after period, and what does it take?",
    border=(
        "From the due time to the first line of the handler, as the executor itself writes it down by the machine's "
        "clock. Nodes and executors are processes of their own that speak gRPC; every fire of the window counts."
    ),
    backends=("sqlite", "postgres"),
    phases=("start", "window", "close", "check"),
    parameters={
        "full": {"schedules": 30_000, "period_s": 60, "duration_s": 180, "warmup_s": 0, "repeats": 1},
        "ci": {"schedules": 6_000, "period_s": 60, "duration_s": 20, "warmup_s": 0, "repeats": 1},
        "smoke": {"schedules": 600, "period_s": 60, "duration_s": 3, "warmup_s": 0, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="start_lag", unit="us", direction="lower", text="due to handler started (p99)"),
        MetricSpec(name="on_time_share", unit="ratio", direction="higher", text="starts at most 1 s after due"),
        MetricSpec(name="late_starts", unit="starts", direction="lower", text="starts more than 1 s after due"),
        MetricSpec(name="missed", unit="fires", direction="zero", text="fire times that brought no execution"),
        MetricSpec(name="starts", unit="starts", direction="none", text="that counted, as the ledgers have them"),
        MetricSpec(name="start_rate", unit="starts/s", direction="none", text="the load, as it was started"),
        *USE_METRICS,
        MetricSpec(name="register_rate", unit="schedules/s", direction="none", text="while the nodes ran beside it"),
    ),
    invariants=("I1", "I2", "I4", "I5", "I6", "I11"),
    limits_of_inference=(
        "One machine holds database, nodes and executors: they compete for its cores.",
        "A spread load has a phase each 10 ms and 6,000 triggers at most; all schedules share one job.",
        "A window of minutes: no checkpoint, no pruning, tables that fit the memory; the soak profile asks for these.",
        "More than 4 nodes are unproven.",
    ),
    under_load=True,
)
