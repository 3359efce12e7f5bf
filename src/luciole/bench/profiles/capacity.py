"""The most that holds an objective."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.profiles.steady import STEADY, USE_METRICS
from luciole.bench.result import MetricSpec

CAPACITY_STEADY = Profile(
    name="capacity-steady",
    question="How many schedules of one period hold the objective of the steady profile here, and what binds?",
    border=(
        "The objective of the steady profile, spread: 99.9 % of the starts at most 1 s after due, none missed. Doubled "
        "until it fails, then bisected in short windows, then confirmed at 0.9, 1.0 and 1.1 of it in longer ones."
    ),
    backends=STEADY.backends,
    phases=("search", "confirm"),
    parameters={
        "full": {
            "start": 200_000,
            "most": 2_000_000,
            "precision": 0.05,
            "period_s": 60,
            "duration_s": 15,
            "warmup_s": 0,
            "confirm_s": 30,
            "budget_s": 600,
            "repeats": 1,
        },
        "ci": {
            "start": 25_000,
            "most": 400_000,
            "precision": 0.2,
            "period_s": 60,
            "duration_s": 10,
            "warmup_s": 0,
            "confirm_s": 15,
            "budget_s": 180,
            "repeats": 1,
        },
        "smoke": {
            "start": 500,
            "most": 500,
            "precision": 1.0,
            "period_s": 60,
            "duration_s": 3,
            "warmup_s": 0,
            "confirm_s": 3,
            "budget_s": 60,
            "repeats": 1,
        },
    },
    metrics=(
        MetricSpec(name="capacity", unit="schedules", direction="higher", text="the most that was confirmed"),
        MetricSpec(
            name="capacity_rate",
            unit="executions/s",
            direction="higher",
            text="the same as a rate",
            ceiling="execution_ceiling_rate",
            share="capacity_share",
        ),
        MetricSpec(
            name="execution_ceiling_rate",
            unit="executions/s",
            direction="none",
            text="executions planned and settled by the server alone, one after the other, in the best way tried",
        ),
        MetricSpec(name="start_lag", unit="us", direction="lower", text="due to handler started at that load (p99)"),
        *USE_METRICS,
    ),
    invariants=STEADY.invariants,
    limits_of_inference=(
        *STEADY.limits_of_inference,
        "Short windows find what is sustained for seconds: checkpoints and growing tables take their share later.",
    ),
)
