"""Processes that die and freeze under load."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

CHAOS = Profile(
    name="chaos",
    question="Nodes and executors die or freeze under load: how soon does the work go on, and is all of it right?",
    border=(
        "From the store's time just before the signal: `recovery` to the first execution that each shard of the node "
        "creates elsewhere, `redelivery` to the start of the last attempt that replaces a lost one."
    ),
    backends=("postgres",),
    phases=("node_kills", "executor_kills", "freezes", "disconnects", "end", "check"),
    parameters={
        "full": {"rate": 500, "node_kills": 20, "executor_kills": 5, "freezes": 2, "disconnects": 3, "repeats": 1},
        "ci": {"rate": 200, "node_kills": 4, "executor_kills": 2, "freezes": 1, "disconnects": 1, "repeats": 1},
        "smoke": {"rate": 100, "node_kills": 1, "executor_kills": 1, "freezes": 0, "disconnects": 0, "repeats": 1},
    },
    metrics=(
        MetricSpec(
            name="recovery", unit="us", direction="lower", text="a shard of a dead or frozen node fires elsewhere"
        ),
        MetricSpec(name="recovery_max_us", unit="us", direction="lower", text="the longest of all shards and faults"),
        MetricSpec(name="redelivery", unit="us", direction="lower", text="one value a kill: its last redelivery"),
        MetricSpec(name="redelivery_max_us", unit="us", direction="lower", text="the longest of all kills"),
        MetricSpec(name="executions", unit="executions", direction="none", text="in the whole repeat"),
        MetricSpec(name="attempts_lost", unit="attempts", direction="none", text="with executors that were killed"),
        MetricSpec(
            name="stale_writes_with_deadline",
            unit="shards",
            direction="zero",
            text="sent by frozen nodes that check their own deadline, and refused by the fence",
        ),
        MetricSpec(
            name="back_percent",
            unit="%",
            direction="higher",
            text="the least share of the rate from 10 s after all connections were ended on",
        ),
        MetricSpec(
            name="stale_writes_refused",
            unit="shards",
            direction="none",
            text="by the fence alone, from nodes whose own deadline check is off",
        ),
    ),
    invariants=("I1", "I2", "I3", "I4", "I5", "I6"),
    limits_of_inference=(
        "SIGKILL and SIGSTOP of processes: the machine, its disk and the server stay up.",
        "Two nodes and two executors on one machine; defaults for all time-outs.",
    ),
    under_load=True,
)
