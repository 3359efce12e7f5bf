"""What waiting costs."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

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
        MetricSpec(
            name="queries",
            unit="statements/s",
            direction="lower",
            text="as the server counts them, those that begin and end transactions included",
        ),
        MetricSpec(name="commits", unit="commits/s", direction="lower", text="as the server counts them"),
    ),
    invariants=(),
    limits_of_inference=("One node and one executor; each further node adds its heartbeat.",),
    under_load=True,
)
