"""What the server alone can do."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

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
