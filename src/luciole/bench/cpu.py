"""CPU seconds by part: this process, and a server with all that it started."""

import resource

from luciole.runtime.extras import require

with require("bench"):
    import psutil


def own_cpu_us() -> int:
    """Return the CPU time of this process, user and system, in microseconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)  # `os.times` counts in hundredths of a second.
    return round((used.ru_utime + used.ru_stime) * 1_000_000)


def tree_cpu_us(pid: int) -> int:
    """Return the CPU time of a process and of all that it started, those that ended included, in microseconds."""
    total = 0.0
    try:
        root = psutil.Process(pid)
        times = root.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
        for child in root.children(recursive=True):
            with child.oneshot():
                times = child.cpu_times()
            total += times.user + times.system
    except psutil.NoSuchProcess:
        return round(total * 1_000_000)
    return round(total * 1_000_000)


def own_written_bytes() -> int | None:
    """Return the bytes that this process handed to the filesystem; None where the system does not say."""
    try:
        counters = psutil.Process().io_counters()
    except (AttributeError, psutil.Error):
        return None
    written: int = getattr(counters, "write_chars", counters.write_bytes)
    return written
