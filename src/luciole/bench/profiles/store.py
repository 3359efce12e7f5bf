"""The verbs of one store."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

#: Sizes of payloads in bytes, and how many callers enqueue at once.
PAYLOADS = (0, 1_024, 16_384)
CALLERS = (1, 8, 64)

_NAMES = ("0", "1k", "16k")


def _metrics() -> tuple[MetricSpec, ...]:
    found = [
        MetricSpec(
            name="bare_insert_rate",
            unit="rows/s",
            direction="none",
            text="one insert at a time into a plain table, each durable before the next",
        ),
        MetricSpec(
            name="enqueue_share",
            unit="ratio",
            direction="higher",
            text="enqueues of one caller without a payload, by bare_insert_rate",
        ),
    ]
    for size in _NAMES:
        bare = "bare_insert_rate" if size == _NAMES[0] else f"bare_insert_{size}_rate"
        phases = [
            (
                f"enqueue_{size}_by_{callers}",
                f"{callers} callers, each one by one",
                bare if callers == 1 else f"enqueue_{size}_ceiling_rate",
            )
            for callers in CALLERS
        ]
        phases += [
            (
                f"settle_{size}",
                "entries read in batches and settled, by all workers",
                f"settle_{size}_ceiling_rate",
            ),
            (f"load_{size}", "executions loaded by id, by all workers", f"load_{size}_ceiling_rate"),
        ]
        ceilings = [
            (f"enqueue_{size}_ceiling_rate", "executions and entries written by the server alone, the best way tried"),
            (f"settle_{size}_ceiling_rate", "the same ended and deleted by the server alone, the best way tried"),
            (f"load_{size}_ceiling_rate", "a bare loop over the primary key, the best number of connections"),
        ]
        if bare != "bare_insert_rate":
            ceilings.append((bare, "the bare insert with this payload"))
        found += [MetricSpec(name=name, unit="rows/s", direction="none", text=text) for name, text in ceilings]
        for name, text, ceiling in phases:
            found += [
                MetricSpec(
                    name=f"{name}_rate",
                    unit="jobs/s",
                    direction="higher",
                    text=f"{text}; payload {size}",
                    ceiling=ceiling,
                    share=f"{name}_share",
                ),
                MetricSpec(name=f"{name}_time", unit="us", direction="lower", text="… one call, or one batch (p99)"),
                MetricSpec(name=f"{name}_cpu_us_per_job", unit="us/job", direction="lower", text="… CPU of the client"),
                MetricSpec(name=f"{name}_concurrency", unit="calls", direction="none", text="… under way on average"),
            ]
    return tuple(found)


STORE = Profile(
    name="store",
    question="What do the verbs of one store cost: enqueue, deliver and settle, load by id?",
    border=(
        "One process calls the verbs as the product does: grouped enqueues, entries of leased shards read and settled "
        "in batches, executions loaded one by one; payloads of 0, 1 and 16 KiB. No node, no executor, no network but "
        "the store's own."
    ),
    backends=("sqlite", "postgres"),
    phases=("bare", "enqueue", "settle", "load", "check"),
    parameters={
        "full": {"tasks": 2_000, "reads": 10_000, "workers": 8, "claim_batch": 100, "repeats": 3},
        "ci": {"tasks": 640, "reads": 2_000, "workers": 8, "claim_batch": 100, "repeats": 2},
        "smoke": {"tasks": 64, "reads": 160, "workers": 4, "claim_batch": 50, "repeats": 1},
    },
    metrics=_metrics(),
    invariants=("I3", "I5", "I6", "I9"),
    limits_of_inference=(
        "One process and one event loop: a store that serves several processes at once is not at its end here.",
        "A rate of one caller is mostly the flush of this machine's disk.",
    ),
    under_load=True,
)
