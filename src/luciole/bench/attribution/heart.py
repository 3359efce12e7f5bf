"""The heart of an event loop that runs a user's handlers: how long it answered nobody, kept in a file."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from luciole.limits import MS_US, SECOND_US
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock

#: One record: when, how much all beats were late until then, and the most that one was late.
_RECORD = Struct("<qqq")

_BEAT_US = 5 * MS_US
_RECORD_US = 100 * MS_US

#: A loop that has written no record for longer was blocked all the while.
_SILENT_US = 2 * _RECORD_US


class Beat(NamedTuple):
    """What was known of a loop at an instant of the host's clock."""

    at_us: Instant
    late_us: int  #: by which all beats together were late
    late_max_us: int


class Heart:
    """Beats on the loop that it is started on, and appends what it finds to a file; it ends with its loop."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._loop = asyncio.get_running_loop()
        self._late_us = self._late_max_us = 0
        self._written_us = 0
        self._next()

    def _next(self) -> None:
        self._expected_us = self._clock.now_us() + _BEAT_US
        self._loop.call_later(_BEAT_US / SECOND_US, self._beat)

    def _beat(self) -> None:
        now_us = self._clock.now_us()
        late_us = max(0, now_us - self._expected_us)
        self._late_us += late_us
        self._late_max_us = max(self._late_max_us, late_us)
        if now_us - self._written_us >= _RECORD_US:
            os.write(self._file, _RECORD.pack(now_us, self._late_us, self._late_max_us))
            self._written_us = now_us
        self._next()


def heart_path(folder: Path, pid: int) -> Path:
    """Return where the heart of a process keeps its beats."""
    return folder / f"beats-{pid}"


def read_beats(folder: Path) -> Iterator[tuple[int, list[Beat]]]:
    """Yield the beats of each process by its id; a last record that a kill cut off does not count."""
    for path in sorted(folder.glob("beats-*")):
        found = path.read_bytes()
        whole = found[: len(found) // _RECORD.size * _RECORD.size]
        yield int(path.name.removeprefix("beats-")), [Beat(*record) for record in _RECORD.iter_unpack(whole)]


def blocked_us(beats: Sequence[Beat], begun_us: Instant, ended_us: Instant) -> int:
    """Return how long a loop answered nobody between two instants, in microseconds."""
    return max(0, _late_at(beats, ended_us) - _late_at(beats, begun_us))


def _late_at(beats: Sequence[Beat], at_us: Instant) -> int:
    """Return the lateness until an instant; silence since the last record is lateness, too."""
    before = next((beat for beat in reversed(beats) if beat.at_us <= at_us), None)
    if before is None:
        return 0
    silent_us = at_us - before.at_us - _SILENT_US
    return before.late_us + max(0, silent_us)
