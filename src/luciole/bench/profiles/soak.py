"""Hours of a steady load."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.profiles.steady import STEADY
from luciole.bench.result import MetricSpec

SOAK = Profile(
    name="soak",
    question="What grows while a load that fits goes on for hours?",
    border=(
        "The steady profile's, at about 60 % of this machine's capacity. Slopes are of the straight line that fits "
        "best, without the first quarter of the window, in units an hour."
    ),
    backends=STEADY.backends,
    phases=STEADY.phases,
    parameters={
        "full": {"schedules": 120_000, "period_s": 60, "duration_s": 7_200, "warmup_s": 0, "repeats": 1},
        "ci": {"schedules": 2_000, "period_s": 20, "duration_s": 60, "warmup_s": 0, "repeats": 1},
        "smoke": {"schedules": 100, "period_s": 5, "duration_s": 10, "warmup_s": 0, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="node_rss_growth", unit="MiB/h", direction="lower", text="memory of the nodes"),
        MetricSpec(name="executor_rss_growth", unit="MiB/h", direction="lower", text="memory of the executors"),
        MetricSpec(name="database_rss_growth", unit="MiB/h", direction="lower", text="memory of the server, unshared"),
        MetricSpec(name="lag_growth", unit="us/h", direction="lower", text="p99 of the time from due to started"),
        MetricSpec(name="table_growth", unit="bytes/h", direction="lower", text="hot tables with their indexes"),
        MetricSpec(name="dead_rows_growth", unit="rows/h", direction="lower", text="dead rows of hot tables"),
        MetricSpec(name="dead_rows_max", unit="rows", direction="lower", text="the most of them"),
        *STEADY.metrics,
    ),
    invariants=STEADY.invariants,
    limits_of_inference=(
        *(text for text in STEADY.limits_of_inference if not text.startswith("A window of minutes")),
        "The default retention keeps all executions of the window: tables grow with what was run.",
        "On SQLite dead rows are not counted, and the table's size is that of the file.",
    ),
)
