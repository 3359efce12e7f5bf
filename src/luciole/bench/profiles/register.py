"""Registering schedules."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

REGISTER = Profile(
    name="register",
    question="How many schedules are registered a second, in bulk and one by one?",
    border="From the call of the use case to its answer, triggers evaluated, all durable; one process.",
    backends=("sqlite", "postgres"),
    phases=("single", "bulk", "again", "check"),
    parameters={
        "full": {"jobs": 50_000, "singles": 300, "registrars": 1, "repeats": 5},
        "ci": {"jobs": 10_000, "singles": 100, "registrars": 1, "repeats": 2},
        "smoke": {"jobs": 2_000, "singles": 50, "registrars": 1, "repeats": 1},
    },
    metrics=(
        MetricSpec(
            name="bulk_rate",
            unit="schedules/s",
            direction="higher",
            text="new ones, in bulk",
            ceiling="register_ceiling_rate",
            share="bulk_share",
        ),
        MetricSpec(
            name="again_rate",
            unit="schedules/s",
            direction="higher",
            text="the same again, nothing changed",
            ceiling="find_ceiling_rate",
            share="again_share",
        ),
        MetricSpec(name="changed_again", unit="schedules", direction="zero", text="written although nothing changed"),
        MetricSpec(name="bulk_cpu_us", unit="us/schedule", direction="lower", text="CPU time of the client"),
        MetricSpec(
            name="single_time",
            unit="us",
            direction="lower",
            text="one alone into a nearly empty store, start to durable (p99)",
        ),
        MetricSpec(
            name="register_ceiling_rate",
            unit="schedules/s",
            direction="none",
            text="as many schedules and cursors, written by the server alone, in the best way tried",
        ),
        MetricSpec(
            name="find_ceiling_rate",
            unit="schedules/s",
            direction="none",
            text="as many found by their names and read by the server alone, in the best way tried",
        ),
    ),
    invariants=("I9",),
    limits_of_inference=("24 triggers and one job among all schedules, as apps have.",),
)
