"""Writing to the disk without a database: many small writes, few large ones, and a log that is flushed each time."""

import mmap
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from luciole.bench.check import judge
from luciole.bench.percentiles import Distribution
from luciole.bench.probing.spec import Probed, ProbeSpec
from luciole.bench.verdict import InvalidRun
from luciole.limits import SECOND_US
from luciole.runtime.chance import seeded_chance
from luciole.runtime.clock import Clock

_MIB = 1_048_576

#: What a database writes for one small transaction.
_LOG_BYTES = 8_192


class Pattern(NamedTuple):
    """How a file is written."""

    name: str
    block_bytes: int
    depth: int  #: writes under way at once
    is_random: bool


RANDOM_4K = Pattern("randwrite", 4_096, 64, is_random=True)
SEQUENTIAL_1M = Pattern("seqwrite", _MIB, 8, is_random=False)


def write_pattern(folder: Path, pattern: Pattern, spec: ProbeSpec, clock: Clock) -> Probed:
    """Write over a file for a while, past the cache of the system where the filesystem lets us, and flush in the end.

    Each of `depth` threads has one write under way. The flush counts: what a cache still holds is not written.

    Raises:
        InvalidRun: the file can't be made.
    """
    path = folder / f"probe-{pattern.name}"
    blocks = spec.file_mib * _MIB // pattern.block_bytes
    _fill(path, spec.file_mib)
    with _opened(path) as (file, is_direct):
        begun_us = clock.monotonic_us()
        end_us = begun_us + round(spec.duration_s * SECOND_US)

        def work(lane: int) -> tuple[int, Distribution]:
            return _write(file, pattern, clock, end_us=end_us, places=_places(pattern, lane, blocks))

        with ThreadPoolExecutor(pattern.depth) as threads:
            parts = list(threads.map(work, range(pattern.depth)))
        os.fsync(file)
        took_us = clock.monotonic_us() - begun_us
    written = sum(count for count, _ in parts)
    whole = Distribution()
    for _, part in parts:
        whole.merge(part.percentiles().hdr_v2)
    found = whole.percentiles()
    size = path.stat().st_size
    path.unlink()
    return Probed(
        figures={
            f"{pattern.name}_rate": written * SECOND_US / took_us,
            f"{pattern.name}_mib_rate": written * pattern.block_bytes / _MIB * SECOND_US / took_us,
            f"{pattern.name}_p99_us": float(found.p99),
        },
        check=judge(f"{pattern.name}_file_bytes", "report", "= :size", size, {"size": blocks * pattern.block_bytes}),
        distributions={f"{pattern.name}_time": found},
        tool=f"built in, {'direct' if is_direct else 'through the cache of the system'}",
    )


def flush_log(folder: Path, spec: ProbeSpec, clock: Clock) -> Probed:
    """Append to a log and flush it each time, one by one: what one commit alone costs at the least."""
    path = folder / "probe-log"
    flush = getattr(os, "fdatasync", os.fsync)
    block = b"\x5a" * _LOG_BYTES
    lag = Distribution()
    count = 0
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        begun_us = at_us = clock.monotonic_us()
        end_us = begun_us + round(spec.duration_s * SECOND_US)
        while count == 0 or at_us < end_us:
            os.write(file, block)
            flush(file)
            now_us = clock.monotonic_us()
            lag.add(now_us - at_us)
            at_us = now_us
            count += 1
    finally:
        os.close(file)
    size = path.stat().st_size
    path.unlink()
    return Probed(
        figures={"fsync_rate": count * SECOND_US / (at_us - begun_us)},
        check=judge("log_bytes", "report", "= :size", size, {"size": count * _LOG_BYTES}),
        distributions={"fsync_time": lag.percentiles()},
        tool="built in",
    )


def _fill(path: Path, mib: int) -> None:
    """Give every block of a file a place on the disk, so that no write has to find one."""
    chunk = b"\x5a" * _MIB
    try:
        with path.open("wb") as file:
            for _ in range(mib):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InvalidRun(f"{path}: {mib} MiB can't be written: {error.strerror}") from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, bool]]:
    """Open a file past the cache, or through it where the filesystem knows no other way."""
    direct = getattr(os, "O_DIRECT", 0)
    try:
        file, is_direct = os.open(path, os.O_WRONLY | direct), bool(direct)
    except OSError:
        file, is_direct = os.open(path, os.O_WRONLY), False
    try:
        yield file, is_direct
    finally:
        os.close(file)


def _places(pattern: Pattern, lane: int, blocks: int) -> Callable[[int], int]:
    """Return which block a lane writes as its n-th."""
    if pattern.is_random:
        chance = seeded_chance(lane)  # The same places each time.
        return lambda _: int(chance() * blocks)
    return lambda number: (number * pattern.depth + lane) % blocks


def _write(
    file: int, pattern: Pattern, clock: Clock, *, end_us: int, places: Callable[[int], int]
) -> tuple[int, Distribution]:
    lag = Distribution()
    count = 0
    with mmap.mmap(-1, pattern.block_bytes) as block:  # Aligned to pages, as direct writes ask for.
        block.write(os.urandom(pattern.block_bytes))
        at_us = clock.monotonic_us()
        while count == 0 or at_us < end_us:
            os.pwrite(file, block, places(count) * pattern.block_bytes)
            now_us = clock.monotonic_us()
            lag.add(now_us - at_us)
            at_us = now_us
            count += 1
    return count, lag
