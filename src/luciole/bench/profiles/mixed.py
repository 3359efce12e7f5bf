"""Everything at once."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.profiles.steady import STEADY, USE_METRICS
from luciole.bench.result import MetricSpec

MIXED = Profile(
    name="mixed",
    question="Do schedules stay on time while requests, retries and cancellations go on beside them?",
    border=(
        "The steady profile's, with a process beside it that has only the store's address and makes requests at "
        "instants of a Poisson process: 70 % run, 20 % fail once and are retried, 10 % are cancelled "
        "at least 1 s before they are due."
    ),
    backends=("sqlite", "postgres"),
    phases=("start", "window", "close", "check"),
    parameters={
        "full": {"schedules": 30_000, "period_s": 60, "duration_s": 120, "request_rate": 200, "repeats": 1},
        "ci": {"schedules": 6_000, "period_s": 60, "duration_s": 20, "request_rate": 50, "repeats": 1},
        "smoke": {"schedules": 600, "period_s": 60, "duration_s": 3, "request_rate": 20, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="start_lag", unit="us", direction="lower", text="of schedules: due to handler started (p99)"),
        MetricSpec(name="request_time", unit="us", direction="lower", text="intended instant to durable answer (p99)"),
        MetricSpec(name="cancel_time", unit="us", direction="lower", text="asked to durably cancelled (p99)"),
        MetricSpec(name="generator_lag", unit="us", direction="none", text="intended instant to the call (p99)"),
        MetricSpec(
            name="on_time_share", unit="ratio", direction="higher", text="schedules' starts at most 1 s after due"
        ),
        MetricSpec(name="late_starts", unit="starts", direction="lower", text="the others"),
        MetricSpec(name="missed", unit="fires", direction="zero", text="fire times that brought no execution"),
        MetricSpec(name="starts", unit="starts", direction="none", text="of schedules, as the ledgers have them"),
        MetricSpec(name="requests", unit="requests", direction="none", text="that were accepted"),
        MetricSpec(
            name="cancelled", unit="requests", direction="none", text="of them at least 1 s before they were due"
        ),
        *USE_METRICS,
    ),
    invariants=("I1", "I2", "I4", "I5", "I6", "I9", "I11"),
    limits_of_inference=(
        *STEADY.limits_of_inference,
        "A cancellation asks for the answer to its request first, so the two make two round trips.",
    ),
)
