"""Creating files: what a filesystem does a second when only names are made."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from luciole.bench.check import judge
from luciole.bench.probing.spec import Probed, ProbeSpec
from luciole.limits import SECOND_US
from luciole.runtime.clock import Clock

_FOLDERS = 64
_THREADS = 8


def create_files(folder: Path, spec: ProbeSpec, clock: Clock) -> Probed:
    """Create empty files in 64 folders from eight threads, and flush each folder; then remove them all."""
    root = folder / "probe-files"
    homes = [root / f"{number:02d}" for number in range(_FOLDERS)]
    for home in homes:
        home.mkdir(parents=True)

    def fill(number: int) -> None:
        place = os.open(homes[number], os.O_RDONLY)
        try:
            for name in range(number, spec.files, _FOLDERS):
                os.close(os.open(f"{name:06d}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=place))
            os.fsync(place)
        finally:
            os.close(place)

    begun_us = clock.monotonic_us()
    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(fill, range(_FOLDERS)))
    took_us = clock.monotonic_us() - begun_us
    found = 0
    for home in homes:
        for file in list(home.iterdir()):
            file.unlink()
            found += 1
        home.rmdir()
    root.rmdir()
    return Probed(
        figures={"create_rate": spec.files * SECOND_US / took_us},
        check=judge("files_created", "report", "= :files", found, {"files": spec.files}),
        distributions={},
        tool="built in",
    )
