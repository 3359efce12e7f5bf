"""What schedulers of a planted burst would tell, for tests."""

from luciole.bench.attribution.document import Attribution, Waits
from luciole.bench.attribution.parts import Used
from luciole.bench.attribution.watching import Told
from luciole.bench.attribution.windows import Window

WALL_US = 1_000_000


def told(stages: dict[str, int], in_flight: dict[str, float], *, main_thread_us: int = 100_000) -> Told:
    return Told(
        begun_us=0,
        ended_us=WALL_US,
        stages_us={**stages, "unexplained": WALL_US - sum(stages.values())},
        in_flight=in_flight,
        main_thread_us=main_thread_us,
        gc_pauses=0,
        gc_pauses_us=0,
        stalls_us=0,
        stall_max_us=0,
    )


def explained(
    *parts: Told,
    cpu_us: int = 300_000,
    run_delay_us: int = 0,
    connections: int = 4,
    waits: Waits | None = None,
    commits_per_job: float = 0.002,
    embedded: bool = False,
) -> Attribution:
    return Window(
        "drain",
        jobs=1_000,
        told={f"scheduler {number}": part for number, part in enumerate(parts, 1)},
        begun_us=0,
        cores=2,
        others=0.0,
        connections=connections,
        used={"scheduler 1": Used(cpu_us, run_delay_us, 1 << 20)},
        waits=waits,
        commits_per_job=commits_per_job,
        embedded=embedded,
    ).explain()
