"""From an enqueue to the start of its handler, on an idle system."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

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
    under_load=True,
)
