"""The cost of single steps."""

from luciole.bench.micro.durable import DURABLES
from luciole.bench.micro.steps import MICROS
from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec


def _counts(unit: str) -> tuple[MetricSpec, ...]:
    return tuple(
        MetricSpec(
            name=f"{micro.name.removesuffix('_us')}_{unit}",
            unit=f"{unit}/step",
            direction="lower",
            text=f"guards: {micro.guards}",
        )
        for micro in MICROS
    )


_TIMES = tuple(
    MetricSpec(name=micro.name, unit="us", direction="lower", text=f"guards: {micro.guards}") for micro in MICROS
)

_STORED = tuple(
    spec
    for durable in DURABLES
    for spec in (
        MetricSpec(name=f"{durable.prefix}_us", unit="us", direction="lower", text=f"guards: {durable.guards}"),
        MetricSpec(
            name=f"{durable.prefix}_commits",
            unit=f"commits/{durable.each}",
            direction="lower",
            text=f"guards: {durable.guards}",
        ),
    )
)

MICRO = Profile(
    name="micro",
    question="What does a single step cost, and is the optimisation that made it cheap still there?",
    border="One step in one process, warm; appends and ids on the embedded store, on a disk.",
    backends=(),
    phases=("measure",),
    parameters={
        "full": {"repeats": 5, "counter": "opcodes"},
        "ci": {"repeats": 3, "counter": "opcodes"},
        "smoke": {"repeats": 1, "counter": "opcodes"},
    },
    metrics=(*_TIMES, *_counts("opcodes"), *_counts("instructions"), *_STORED),
    invariants=(),
    limits_of_inference=(
        "A warm step on this CPU; ratios carry over to others, microseconds do not.",
        "Opcodes are those of Python's own machine: what a step does inside C is in its time, or in instructions.",
    ),
)
