"""Handing executions over."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

ENQUEUE = Profile(
    name="enqueue",
    question="What does it cost to hand an execution over, and how much of that is the database's own?",
    border=(
        "From the call of `enqueue` to the durable answer, in a process that has only the store's address; in the open "
        "loop from the intended instant. No node runs. The bare loops insert a row of the same payload into a table "
        "with one key, over the same driver."
    ),
    backends=("sqlite", "postgres"),
    phases=("alone", "bulk", "open_loop", "check"),
    parameters={
        "full": {"singles": 2_000, "bulk": 50_000, "rate": 200, "duration_s": 10, "payload_bytes": 0, "repeats": 5},
        "ci": {"singles": 500, "bulk": 10_000, "rate": 200, "duration_s": 3, "payload_bytes": 0, "repeats": 3},
        "smoke": {"singles": 100, "bulk": 2_000, "rate": 50, "duration_s": 1, "payload_bytes": 0, "repeats": 1},
    },
    metrics=(
        MetricSpec(
            name="single_share",
            unit="ratio",
            direction="higher",
            text="single_rate by bare_insert_rate, in turns of the same repeat",
        ),
        MetricSpec(
            name="single_transaction_share",
            unit="ratio",
            direction="higher",
            text="single_rate by bare_transaction_rate, in turns of the same repeat",
        ),
        MetricSpec(
            name="keyed_share",
            unit="ratio",
            direction="higher",
            text="keyed_rate by bare_insert_rate, in turns of the same repeat",
        ),
        MetricSpec(
            name="single_rate",
            unit="jobs/s",
            direction="higher",
            text="one by one, each durable before the next",
            ceiling="bare_insert_rate",
            share="single_share",
        ),
        MetricSpec(
            name="keyed_rate",
            unit="jobs/s",
            direction="higher",
            text="the same, each with a request key",
            ceiling="bare_insert_rate",
            share="keyed_share",
        ),
        MetricSpec(
            name="bulk_rate",
            unit="jobs/s",
            direction="higher",
            text="in one call of enqueue_many",
            ceiling="enqueue_ceiling_rate",
            share="bulk_share",
        ),
        MetricSpec(
            name="enqueue_ceiling_rate",
            unit="jobs/s",
            direction="none",
            text="as many executions and entries, written by the server alone, in the best way tried",
        ),
        MetricSpec(
            name="bare_insert_rate",
            unit="rows/s",
            direction="none",
            text="one prepared insert at a time, which commits by itself: one round trip",
        ),
        MetricSpec(
            name="bare_transaction_rate",
            unit="rows/s",
            direction="none",
            text="the same insert between a begin and a commit",
        ),
        MetricSpec(
            name="request_time",
            unit="us",
            direction="lower",
            text="open loop: intended instant to durable answer (p99)",
        ),
        MetricSpec(name="generator_lag", unit="us", direction="none", text="intended instant to the call (p99)"),
    ),
    invariants=("I1", "I9"),
    limits_of_inference=(
        "One machine holds database and client; a network adds its round trip to each, to the bare loops too.",
        "A share depends on the disk: the slower its flush, the less the client's work shows.",
    ),
    under_load=True,
)
