"""CPU time, run delay and memory of the parts of a run, read from the system."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from luciole.runtime.extras import require

with require("bench"):
    import psutil

_PROC = Path("/proc")
_PAGE_BYTES = 4_096
_NS_IN_US = 1_000


class Used(NamedTuple):
    """What a part has used since it began."""

    cpu_us: int
    run_delay_us: int  #: ready to run while no core was free
    rss_bytes: int


def pids_of(pid: int) -> list[int]:
    """Return a process and all that it started and that still run."""
    with suppress(psutil.NoSuchProcess):
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return []


def used_by(pids: list[int]) -> Used:
    """Return what some processes have used; one that ended counts nothing.

    CPU time is known to the nanosecond where the system counts how it schedules, else to 10 ms.
    """
    cpu_us = delay_us = rss = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            cpu, delay = _scheduled(pid)
            cpu_us, delay_us = cpu_us + cpu, delay_us + delay
            rss += int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    return Used(cpu_us, delay_us, rss)


def machine_busy_us() -> int:
    """Return the CPU time that all processes of the machine have used on all cores, in microseconds, to 10 ms."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    return round((sum(times) - idle - getattr(times, "guest", 0.0)) * 1_000_000)


def can_tell_delays() -> bool:
    """Whether this system says how long processes wait for a core."""
    return (_PROC / "self/schedstat").exists()


def _scheduled(pid: int) -> tuple[int, int]:
    """Return the CPU time and the run delay of all threads of a process, in microseconds."""
    cpu = delay = 0
    if not can_tell_delays():
        times = psutil.Process(pid).cpu_times()
        return round((times.user + times.system) * 1_000_000), 0
    for thread in (_PROC / str(pid) / "task").iterdir():
        fields = (thread / "schedstat").read_text(encoding="ascii").split()
        cpu, delay = cpu + int(fields[0]), delay + int(fields[1])
    return cpu // _NS_IN_US, delay // _NS_IN_US
