"""The floor of this machine."""

from luciole.bench.profiles.profile import Profile
from luciole.bench.result import MetricSpec

PROBE = Profile(
    name="probe",
    question="What do this machine's disk and a round trip to the store cost, whatever program asks?",
    border=(
        "Plain system calls on the disk that the data lies on, and the smallest question over one connection; no line "
        "of the product takes part."
    ),
    backends=("sqlite", "postgres"),
    phases=("4k-randwrite", "1m-seqwrite", "meta-create", "wal-fsync", "rtt"),
    parameters={
        "full": {"duration_s": 10, "file_mib": 512, "files": 100_000, "round_trips": 5_000, "repeats": 3},
        "ci": {"duration_s": 2, "file_mib": 64, "files": 10_000, "round_trips": 1_000, "repeats": 1},
        "smoke": {"duration_s": 0.2, "file_mib": 8, "files": 1_000, "round_trips": 200, "repeats": 1},
    },
    metrics=(
        MetricSpec(name="randwrite_rate", unit="writes/s", direction="higher", text="4 KiB at random, 64 under way"),
        MetricSpec(name="randwrite_mib_rate", unit="MiB/s", direction="higher", text="the same in bytes"),
        MetricSpec(name="randwrite_p99_us", unit="us", direction="lower", text="one of these writes, 99 of 100"),
        MetricSpec(name="seqwrite_rate", unit="writes/s", direction="higher", text="1 MiB in order, 8 under way"),
        MetricSpec(name="seqwrite_mib_rate", unit="MiB/s", direction="higher", text="the same in bytes"),
        MetricSpec(name="seqwrite_p99_us", unit="us", direction="lower", text="one of these writes, 99 of 100"),
        MetricSpec(name="create_rate", unit="files/s", direction="higher", text="empty files in 64 folders, 8 threads"),
        MetricSpec(
            name="fsync_rate",
            unit="flushes/s",
            direction="higher",
            text="8 KiB appended and flushed, one by one: what bounds commits that share no flush",
        ),
        MetricSpec(name="fsync_time", unit="us", direction="lower", text="one of these flushes (p99)"),
        MetricSpec(name="rtt_rate", unit="questions/s", direction="higher", text="SELECT 1 over one connection"),
        MetricSpec(name="rtt", unit="us", direction="lower", text="one of these questions (p99)"),
    ),
    invariants=(),
    limits_of_inference=(
        "The disk as this machine shows it: a cache in front of it may answer before anything is durable.",
        "Built in, the writes come from threads of one interpreter; fio keeps deeper queues full.",
    ),
)
