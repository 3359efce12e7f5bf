"""What the processes of a burst are told, and what they tell."""

from typing import Literal

import msgspec

from luciole.bench.attribution.profiling import Kind
from luciole.bench.attribution.watching import Told
from luciole.bench.backends import Place
from luciole.bench.ceiling.settings import CeilingSetting
from luciole.bench.result import Percentiles
from luciole.model.lease import Lease

Topology = Literal["partitioned", "contention", "zombie", "flap"]
Path = Literal["batch", "single"]
Start = Literal["cold", "warm"]

#: How many schedulers a topology has when nobody says so: contention needs a rival, flapping needs two survivors.
SCHEDULERS = {"partitioned": 1, "contention": 2, "zombie": 1, "flap": 3}


class BurstSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a burst, as requested."""

    jobs: int
    warm_up_jobs: int
    shards: int = 32
    schedulers: int = 1
    topology: Topology = "partitioned"
    path: Path = "batch"
    start: Start = "cold"
    plan_ahead_us: int = 0
    batch: int | None = None  #: the floor of a chunk; None: the product's
    batch_max: int | None = None  #: the most of a chunk; None: the store's
    connections: int | None = None  #: plan chunks in flight a scheduler; None: the store's
    reporters: int = 4  #: concurrent batches of reports a scheduler
    report_batch: int = 500
    pool: int | None = None  #: connections for each purpose, fewer than its calls may take; None: the store's


class RepeatOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of one repeat is told."""

    index: int
    spec: BurstSpec
    place: Place
    ceiling_place: Place
    sample_waits: bool = False
    profile: Kind | None = None  #: profile the schedulers; then the repeat counts for nothing
    ceiling: list[CeilingSetting]  #: measured before and after the burst; empty: not at all


class SchedulerOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What one scheduler is told."""

    spec: BurstSpec
    place: Place
    leases: list[Lease]
    zombie: bool = False  #: trusts its leases for ever, refused or not: only the store's fence stops it


class Drained(msgspec.Struct, kw_only=True):
    """What one scheduler did between the gate and the last commit."""

    created: int
    skipped: int
    lost: int
    refused: int
    entries: int
    chunks: int
    gate_us: int  #: when the gate opened, by the store's clock
    first_commit_us: int
    last_commit_us: int
    cpu_us: int
    fire_lag: Percentiles
    decide_lag: Percentiles
    told: Told
    verbs: dict[str, int]
    commit_time: Percentiles  #: of one chunk's transaction
    errors: int = 0  #: ticks of a running plan loop that failed


class Closed(msgspec.Struct, kw_only=True):
    """What one scheduler's reporters did."""

    settled: int
    confirmed: int
    refused: int
    duration_us: int
    cpu_us: int
    written_bytes: int | None
    batches: int
    settle_lag: Percentiles
    told: Told
