"""The cost of single steps."""

from luciole.bench.micro import MICROS
from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

MICRO = Profile(
    name="micro",
    question="What does a single step cost, and is the optimisation that made it cheap still there?",
    border="One step in one process, warm; nothing is stored.",
    backends=(),
    phases=("measure",),
    parameters={"full": {"repeats": 5}, "ci": {"repeats": 3}, "smoke": {"repeats": 1}},
    metrics=tuple(
        MetricSpec(name=micro.name, unit="us", direction="lower", text=f"guards: {micro.guards}") for micro in MICROS
    ),
    invariants=(),
    limits_of_inference=("A warm step on this CPU; ratios carry over to others, microseconds do not.",),
)
