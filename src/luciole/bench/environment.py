"""The machine that a run was measured on: what a figure means elsewhere depends on it."""

import hashlib
import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from luciole.runtime.extras import require

with require("bench"):
    import psutil

UNAVAILABLE = "unavailable"

#: Packages whose version changes what is measured.
_PACKAGES = ("luciole", "asyncpg", "uvloop", "grpcio", "protobuf", "msgspec", "hdrhistogram", "psutil")

#: What makes two machines the same for a comparison: its parts change slowly.
_SLOW = ("cpu", "cores", "memory_mib", "kernel", "hypervisor", "filesystem", "python")


def environment(folder: Path) -> dict[str, Any]:
    """Describe this machine, with the folder that the data lies in.

    Returns:
        Text and numbers by name; what can't be known is "unavailable". `fingerprint` is 16 hex digits of the parts that
        change slowly, `noise` holds what changes all the time.
    """
    found: dict[str, Any] = {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "hypervisor": _hypervisor(),
        "memory_mib": psutil.virtual_memory().total >> 20,
        "kernel": f"{platform.system()} {platform.release()}",
        "data_folder": str(folder),
        **_disk(folder),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: known for name in _PACKAGES if (known := _version(name))},
    }
    slow = json.dumps([found[name] for name in _SLOW])
    found["fingerprint"] = hashlib.sha256(slow.encode()).hexdigest()[:16]
    found["noise"] = {"load_1min": round(os.getloadavg()[0], 2), "priority": _priority()}
    return found


def stolen_share(before: tuple[float, float], after: tuple[float, float]) -> float:
    """Return the share of CPU time between two `cpu_clock` readings that the hypervisor gave to others, 0 to 1."""
    whole = after[0] - before[0]
    return (after[1] - before[1]) / whole if whole > 0 else 0.0


def cpu_clock() -> tuple[float, float]:
    """Return the seconds of all cores since the start of the machine, and those that were stolen."""
    times = psutil.cpu_times()
    return sum(times), float(getattr(times, "steal", 0.0))


def product() -> dict[str, Any]:
    """Describe what is measured: version, and revision with its dirty flag when it lies in a working copy."""
    return {"version": _version("luciole") or UNAVAILABLE, **_revision(Path(__file__).parent)}


def _revision(folder: Path) -> dict[str, Any]:
    head = _git(folder, "rev-parse", "HEAD")
    if head is None or "site-packages" in folder.parts:
        return {"revision": UNAVAILABLE, "dirty": None}
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"revision": head, "dirty": changed != ""}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - whichever git the user has
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip() or UNAVAILABLE
    except OSError:
        return UNAVAILABLE


def _cpu() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or UNAVAILABLE


def _turbo() -> str:
    no_turbo = _read("/sys/devices/system/cpu/intel_pstate/no_turbo")
    if no_turbo != UNAVAILABLE:
        return "off" if no_turbo == "1" else "on"
    boost = _read("/sys/devices/system/cpu/cpufreq/boost")
    return {"1": "on", "0": "off"}.get(boost, UNAVAILABLE)


def _hypervisor() -> str:
    vendor = _read("/sys/devices/virtual/dmi/id/sys_vendor")
    flags = _read("/proc/cpuinfo")
    if " hypervisor" not in flags:
        return "none" if flags != UNAVAILABLE else UNAVAILABLE
    return f"yes ({vendor})" if vendor != UNAVAILABLE else "yes"


def _priority() -> str:
    """How the scheduler of the system prefers this process and its children to all others."""
    if not hasattr(os, "sched_getscheduler"):
        return UNAVAILABLE
    names = {os.SCHED_OTHER: "ordinary", os.SCHED_FIFO: "real-time", os.SCHED_RR: "real-time"}
    name = names.get(os.sched_getscheduler(0), "other")
    return f"{name}, niceness {os.nice(0)}" if os.nice(0) else name


def _disk(folder: Path) -> dict[str, Any]:
    """The filesystem and the device that a folder lies on: the longest mount point that holds it."""
    resolved = folder.resolve()
    best = None
    for mount in psutil.disk_partitions(all=True):
        point = Path(mount.mountpoint)
        if resolved.is_relative_to(point) and (best is None or len(mount.mountpoint) > len(best.mountpoint)):
            best = mount
    if best is None:
        return {"filesystem": UNAVAILABLE, "disk": UNAVAILABLE}
    return {"filesystem": best.fstype, "disk": best.device, "mount_options": best.opts}
