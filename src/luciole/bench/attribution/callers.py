"""Where the time of a process that calls a store went: each instant of its thread belongs to one stage.

A look is taken wherever a verb of the store, or a step inside one, begins or ends. Between two looks the system says
how long the thread computed and how long it was ready without a core; what is left it was blocked. What it computed
belongs to whoever spoke last: the client, a verb of the store, or the driver; what it was blocked, to what was under
way.
"""

import gc
import inspect
import os
import threading
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import msgspec

from luciole.bench.attribution.ceilings import UNEXPLAINED
from luciole.bench.attribution.document import Attribution
from luciole.bench.attribution.observing import Observation
from luciole.bench.attribution.threads import WAIT_CORE
from luciole.bench.attribution.watching import Told
from luciole.bench.spans import Span, in_flight, pass_through
from luciole.runtime.clock import Clock
from luciole.store.spi import Store

#: What the thread computes: outside of the store, in its verbs, in the driver while a statement is under way, and in
#: the collector of garbage.
COMPUTING = ("client", "verb", "driver", "gc")

#: Steps that others work at while the thread is blocked; whichever is under way first has the time.
WAITS = ("commit", "statement", "lock", "wait_connection")

#: What a process that calls a store is called.
CLIENT = "the client"

_CLIENT, _VERB, _DRIVER, _GC = range(len(COMPUTING))
_AS_BEFORE, _COLLECTED = -1, -2

#: Verbs that commit by themselves.
_WRITING = frozenset({"enqueue", "intern_jobs", "put_schedules", "settle", "take_ids"})

#: A thread that did nothing else for so long was blocked, so that it may have waited for a core as well.
_BLOCKED_US = 20

_FIELDS = 4
_NS_IN_US = 1_000


class WindowTold(msgspec.Struct, frozen=True, kw_only=True):
    """What a process tells of one window."""

    name: str
    jobs: int
    commits: int
    connections: int  #: the most that it had at the same time
    told: Told
    offered: bool = False  #: its rate is that of the load, not the most that it could do


class CallerLog:
    """Looks at the thread that makes it; steps may be told from others, too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._thread = threading.get_ident()
        self._looks = array("q")
        self._spans: list[Span] = []
        self._last = (0, 0, 0)
        self.windows: list[WindowTold] = []  #: those that have ended
        self._delays = -1
        with suppress(OSError):  # Only Linux tells.
            self._delays = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)

    def begin(self) -> int:
        """Note that a step of a verb begins; return the monotonic time, microseconds."""
        return self._look(_DRIVER)

    def end(self, step: str, begun_us: int) -> None:
        """Note that a step ended now."""
        self._spans.append(Span(step, begun_us, self._look(_VERB), None))

    def around(self, store: Store) -> Store:
        """Return the store with all of its verbs watched."""
        verbs = (name for name in dir(type(store)) if not name.startswith("_"))
        calls = {name: getattr(store, name) for name in verbs if name not in {"open", "close", "migrate"}}
        return pass_through(
            store, {name: self._watch(name, call) for name, call in calls.items() if inspect.iscoroutinefunction(call)}
        )

    @contextmanager
    def window(self, name: str, jobs: int, *, rest: str = UNEXPLAINED) -> Iterator[None]:
        """Keep where the time goes until the context ends.

        Args:
            name: of the window.
            jobs: done in it.
            rest: the stage in which nothing is under way: `idle` where nothing has to be.
        """
        self._looks, self._spans = array("q"), []
        gc.callbacks.append(self._collected)
        begun_us = self._look(_CLIENT)
        try:
            yield
        finally:
            ended_us = max(self._look(_CLIENT), begun_us + 1)
            gc.callbacks.remove(self._collected)
        looks = [tuple(self._looks[at : at + _FIELDS]) for at in range(0, len(self._looks), _FIELDS)]
        self.windows.append(told_of(name, jobs, looks, self._spans, begun_us, ended_us, rest=rest))

    def close(self) -> None:
        """Give back what it holds."""
        if self._delays >= 0:
            os.close(self._delays)

    def _look(self, kind: int) -> int:
        at_us = self._clock.monotonic_us()
        if threading.get_ident() == self._thread:
            cpu_us = time.thread_time_ns() // _NS_IN_US
            was_at_us, was_cpu_us, delay_us = self._last
            if self._delays >= 0 and at_us - was_at_us - (cpu_us - was_cpu_us) > _BLOCKED_US:
                delay_us = int(os.pread(self._delays, 64, 0).split()[1]) // _NS_IN_US
            self._last = (at_us, cpu_us, delay_us)
            self._looks.extend((*self._last, kind))
        return at_us

    def _watch(self, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def watched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the verb has them
            begun_us = self._look(_VERB)
            try:
                return await call(*args, **kwargs)
            finally:
                self._spans.append(Span(name, begun_us, self._look(_CLIENT), None))

        return watched

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        self._look(_GC if phase == "start" else _COLLECTED)


def told_of(
    name: str,
    jobs: int,
    looks: Sequence[tuple[int, ...]],
    spans: Sequence[Span],
    begun_us: int,
    ended_us: int,
    *,
    rest: str,
) -> WindowTold:
    """Return what looks and spans say of a window; its stages add up to it.

    Args:
        name: of the window.
        jobs: done in it.
        looks: from its begin to its end: instant, CPU and delay until then, and who speaks from there on.
        spans: verbs, and steps inside them.
        begun_us: where it begins.
        ended_us: where it ends.
        rest: the stage of what is blocked with nothing under way.
    """
    verbs = sorted({span.verb for span in spans} - {*WAITS, "connection"})
    holders = _Holders(spans, (*WAITS, *verbs), begun_us, ended_us, rest)
    given = dict.fromkeys((*COMPUTING, WAIT_CORE, *WAITS, *verbs, rest), 0.0)
    speaking, collecting, pauses = _CLIENT, False, 0
    for (at_us, cpu, delay, kind), (until_us, cpu_then, delay_then, _) in pairwise(looks):
        pauses += kind == _GC
        collecting = kind == _GC or (collecting and kind != _COLLECTED)
        speaking = kind if kind in {_CLIENT, _VERB, _DRIVER} else speaking
        wall_us = until_us - at_us
        cpu_us = min(cpu_then - cpu, wall_us)
        delay_us = min(max(0, delay_then - delay), wall_us - cpu_us)
        given[COMPUTING[_GC if collecting else speaking]] += cpu_us
        given[WAIT_CORE] += delay_us
        if blocked_us := wall_us - cpu_us - delay_us:
            for stage, share in holders.shares(at_us, until_us):
                given[stage] += blocked_us * share
    stages = {stage: round(us) for stage, us in given.items() if round(us)}
    stages.setdefault(UNEXPLAINED, 0)
    longest = max(stages, key=lambda stage: stages[stage])
    stages[longest] += ended_us - begun_us - sum(stages.values())  # What was rounded.
    return WindowTold(
        name=name,
        jobs=jobs,
        commits=_commits(spans),
        connections=_most([span for span in spans if span.verb == "connection"]),
        told=Told(
            begun_us=begun_us,
            ended_us=ended_us,
            stages_us=stages,
            in_flight=in_flight(spans, begun_us, ended_us),
            main_thread_us=looks[-1][1] - looks[0][1],
            gc_pauses=pauses,
            gc_pauses_us=round(given["gc"]),
            stalls_us=0,
            stall_max_us=0,
            computing=COMPUTING,
        ),
    )


class _Holders:
    """Who has the time at which instant: the first of an order that is under way; asked for in order of time."""

    def __init__(self, spans: Sequence[Span], order: Sequence[str], begun_us: int, ended_us: int, rest: str) -> None:
        edges = sorted(
            edge
            for span in spans
            if span.verb in order
            for edge in ((span.begun_us, 1, span.verb), (span.ended_us, -1, span.verb))
        )
        under_way = dict.fromkeys(order, 0)
        self._pieces: list[tuple[int, int, str]] = []
        at_us = begun_us
        for edge_us, step, verb in (*edges, (ended_us, 0, order[0] if order else rest)):
            if edge_us > at_us:
                holder = next((name for name in order if under_way[name] > 0), rest)
                self._pieces.append((at_us, edge_us, holder))
                at_us = edge_us
            if step:
                under_way[verb] += step
        self._next = 0

    def shares(self, begun_us: int, ended_us: int) -> Iterator[tuple[str, float]]:
        """Yield holders between two instants with their shares of that time."""
        while self._pieces[self._next][1] <= begun_us:
            self._next += 1
        at = self._next
        while at < len(self._pieces) and self._pieces[at][0] < ended_us:
            from_us, to_us, holder = self._pieces[at]
            yield holder, (min(to_us, ended_us) - max(from_us, begun_us)) / (ended_us - begun_us)
            at += 1


def explain_windows(seen: Observation, windows: Sequence[WindowTold], *, zero_us: int) -> list[Attribution]:
    """Explain the windows that one process tells of.

    Args:
        seen: what was observed from outside meanwhile.
        windows: in order.
        zero_us: the begin of the repeat by the monotonic clock.
    """
    return [
        seen.explain(
            window.name,
            {CLIENT: window.told},
            jobs=window.jobs,
            begun_us=window.told.begun_us,
            zero_us=zero_us,
            connections=window.connections,
            commits_per_job=window.commits / window.jobs,
            offered=window.offered,
        )
        for window in windows
    ]


def _commits(spans: Sequence[Span]) -> int:
    """Return how many transactions ended; where a verb is one statement on a connection, no COMMIT tells."""
    commits = sum(span.verb == "commit" for span in spans)
    single = sum(span.verb in _WRITING for span in spans) if any(span.verb == "connection" for span in spans) else 0
    return max(commits, single)


def _most(spans: Sequence[Span]) -> int:
    """Return how many of some spans were open at once, at least one."""
    edges = sorted(edge for span in spans for edge in ((span.begun_us, 1), (span.ended_us, -1)))
    count = most = 0
    for _, step in edges:
        count += step
        most = max(most, count)
    return max(1, most)
