"""Where the wall time of one thread went: each instant belongs to one stage, so that all add up to the window.

A look is taken wherever something begins or ends. Between two looks the same things are under way, and the system says
how long the thread computed and how long it was ready without a core; what is left it was blocked.
"""

import os
import threading
import time
from array import array
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

import msgspec

from luciole.runtime.clock import Clock

ArgumentsT = ParamSpec("ArgumentsT")
ResultT = TypeVar("ResultT")

#: Steps of the process itself: the first that is under way has what the thread computes.
STEPS = ("gc", "decode", "encode")

#: Verbs of a store: the first that is under way has the time in which the thread is blocked.
VERBS = (
    "settle",
    "record_deliveries",
    "commit_plan",
    "commit_stride",
    "route_entries",
    "ready_routes",
    "ready_entries",
    "open_entries",
    "due_cursors",
    "due_groups",
    "load_jobs",
    "load_triggers",
    "mark_running",
    "withdrawals",
    "beat",
    "acquire_leases",
    "renew_leases",
)

#: The thread computes, in no step that is known by name.
COMPUTE = "compute"
#: It is ready, and others have the cores.
WAIT_CORE = "wait_core"
#: It is blocked, no call of the store is under way, and executors have work of it.
WAIT_EXECUTORS = "wait_executors"
#: It is blocked, and nothing is under way.
IDLE = "idle"
#: It is blocked, and all is done; the bench has yet to see it.
SEEN_LATER = "seen_later"

#: A node that keeps such a log.
NODE_MODULE = "luciole.bench.attribution.node"

_NAMES = (*STEPS, *VERBS)
_NUMBERS = {name: number for number, name in enumerate(_NAMES, 1)}
_FIELDS = 5

#: Numbers that are kept in memory before they are written.
_KEPT_MAX = 8_190

_NS_IN_US = 1_000


class Look(NamedTuple):
    """What was known of a thread at an instant, and what began or ended there."""

    at_us: int  #: by the monotonic clock that all processes of a host share
    cpu_us: int  #: computed since it began
    delay_us: int  #: ready without a core since it began
    event: int  #: the number of a name that begins; negative: it ends; 0: neither
    flights: int  #: executions that executors have


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    """What a window was made of; times are microseconds."""

    exclusive_us: dict[str, int]  #: they add up to the window
    in_flight: dict[str, float]  #: how many of each were under way on average
    cpu_us: int
    delay_us: int


class ThreadLog:
    """Looks at the thread that makes it, and appends what it sees to a file."""

    def __init__(self, path: Path, clock: Clock, flights: Callable[[], int]) -> None:
        """Begin.

        Args:
            path: the file.
            clock: the time.
            flights: tells how many executions executors have.
        """
        self._clock = clock
        self._flights = flights
        self._kept = array("q")
        self._thread = threading.get_ident()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._delays = -1
        with suppress(OSError):  # Only Linux tells.
            self._delays = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self.look()

    def look(self, event: int = 0) -> None:
        """Take a look.

        Args:
            event: the number of what begins here, negative where it ends, 0 where neither does.
        """
        cpu_us = time.thread_time_ns() // _NS_IN_US
        delay_us = int(os.pread(self._delays, 64, 0).split()[1]) // _NS_IN_US if self._delays >= 0 else 0
        self._kept.extend((self._clock.monotonic_us(), cpu_us, delay_us, event, self._flights()))
        if len(self._kept) >= _KEPT_MAX:
            self._write()

    def step(self, name: str, call: Callable[ArgumentsT, ResultT]) -> Callable[ArgumentsT, ResultT]:
        """Return a call whose begin and end are looked at."""
        number = _NUMBERS[name]

        def watched(*args: ArgumentsT.args, **kwargs: ArgumentsT.kwargs) -> ResultT:
            self.look(number)
            try:
                return call(*args, **kwargs)
            finally:
                self.look(-number)

        return watched

    def verb(
        self, name: str, call: Callable[ArgumentsT, Awaitable[ResultT]]
    ) -> Callable[ArgumentsT, Awaitable[ResultT]]:
        """Return a verb of a store whose begin and end are looked at."""
        number = _NUMBERS[name]

        async def watched(*args: ArgumentsT.args, **kwargs: ArgumentsT.kwargs) -> ResultT:
            self.look(number)
            try:
                return await call(*args, **kwargs)
            finally:
                self.look(-number)

        return watched

    def collected(self, phase: str, _: dict[str, int]) -> None:
        """Look at the begin and the end of a collection of garbage; a callback of `gc`, in the thread that it stops."""
        if threading.get_ident() != self._thread:
            return  # A thread of the embedded store collects: its clocks are not those of the thread that is watched.
        self.look(_NUMBERS["gc"] if phase == "start" else -_NUMBERS["gc"])

    def close(self) -> None:
        """Take a last look and write what is left."""
        self.look()
        self._write()
        os.close(self._file)
        if self._delays >= 0:
            os.close(self._delays)

    def _write(self) -> None:
        kept, self._kept = self._kept, array("q")
        os.write(self._file, kept.tobytes())


def looks_path(folder: Path, pid: int) -> Path:
    """Return where the log of a process keeps its looks."""
    return folder / f"looks-{pid}"


def read_looks(path: Path) -> Iterator[Look]:
    """Yield the looks of a log; none where there is no file, and a last one that a kill cut off does not count."""
    numbers = array("q")
    with suppress(OSError):
        found = path.read_bytes()
        numbers.frombytes(found[: len(found) // (_FIELDS * numbers.itemsize) * (_FIELDS * numbers.itemsize)])
    for at in range(0, len(numbers), _FIELDS):  # Hours have millions: they are made one by one.
        yield Look(*numbers[at : at + _FIELDS])


def last_end_us(looks: Sequence[Look], verb: str, ended_us: int) -> int:
    """Return when a call of a verb ended for the last time before an instant; 0: none did."""
    return max((look.at_us for look in looks if look.event == -_NUMBERS[verb] and look.at_us <= ended_us), default=0)


def thread_stages(
    looks: Iterable[Look], begun_us: int, ended_us: int, *, rest: str, done_us: int | None = None
) -> Stages | None:
    """Give each instant of a window to one stage.

    What the thread computed goes to the first step under way, else to `compute`; then comes the wait for a core; of
    what is left, blocked, the first verb under way has all, then executors that have work. Between two looks that
    lie around an end of the window, its part of them counts.

    Args:
        looks: in order.
        begun_us: the window's begin.
        ended_us: its end.
        rest: the stage in which nothing is under way: with work that is due all the while, `unexplained`.
        done_us: when all work was done; nothing under way after it is `seen_later`.

    Returns:
        The stages; None when the looks do not reach over the window.
    """
    given: dict[str, float] = {}
    flown: dict[str, float] = {}
    cpu_sum = delay_sum = 0.0
    under_way = dict.fromkeys(_NAMES, 0)
    covered_us = 0
    for look, following in pairwise(looks):
        if look.event:
            under_way[_NAMES[abs(look.event) - 1]] += 1 if look.event > 0 else -1
        wall_us = following.at_us - look.at_us
        inside_us = min(following.at_us, ended_us) - max(look.at_us, begun_us)
        if inside_us <= 0:
            continue
        covered_us += inside_us
        share = inside_us / wall_us
        cpu_us = min(following.cpu_us - look.cpu_us, wall_us) * share
        delay_us = min((following.delay_us - look.delay_us) * share, inside_us - cpu_us)
        resting = SEEN_LATER if done_us is not None and look.at_us >= done_us else rest
        waiting = next((name for name in VERBS if under_way[name] > 0), resting if not look.flights else WAIT_EXECUTORS)
        computing = next((name for name in STEPS if under_way[name] > 0), COMPUTE)
        for name, us in ((computing, cpu_us), (WAIT_CORE, delay_us), (waiting, inside_us - cpu_us - delay_us)):
            given[name] = given.get(name, 0.0) + us
        for name, count in under_way.items():
            if count > 0:
                flown[name] = flown.get(name, 0.0) + count * inside_us
        cpu_sum, delay_sum = cpu_sum + cpu_us, delay_sum + delay_us
    if not 0 < covered_us == ended_us - begun_us:
        return None
    order = (*STEPS, COMPUTE, WAIT_CORE, *VERBS, WAIT_EXECUTORS, SEEN_LATER, rest)
    return Stages(
        exclusive_us=_whole({name: given[name] for name in order if name in given}, ended_us - begun_us),
        in_flight={name: round(us / (ended_us - begun_us), 4) for name, us in flown.items()},
        cpu_us=round(cpu_sum),
        delay_us=round(delay_sum),
    )


def _whole(given: dict[str, float], wall_us: int) -> dict[str, int]:
    """Return whole microseconds that add up to the window, too."""
    found = {name: int(us) for name, us in given.items()}
    longest = max(found, key=lambda name: found[name])
    found[longest] += wall_us - sum(found.values())
    return found
