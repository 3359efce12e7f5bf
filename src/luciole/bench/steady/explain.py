"""Why a steady load starts as punctually as it does: what it leaves free, or what is full; pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from luciole import limits
from luciole.bench.attribution.ceilings import UNEXPLAINED, attribute, resource
from luciole.bench.attribution.document import Attribution, Process, Resource, Series, Sign, Stage, Waits
from luciole.bench.attribution.heart import Beat, blocked_us
from luciole.bench.attribution.postgres import flushes
from luciole.bench.attribution.threads import COMPUTE, IDLE, STEPS, Look, Stages, thread_stages
from luciole.bench.percentiles import Distribution
from luciole.bench.steady.ledger import Start
from luciole.bench.steady.sampler import LONG_LOOKS, SHORT_LOOKS, Sample
from luciole.model.instant import Instant

PointT = TypeVar("PointT")

#: Starts that come later than this stand in line for something.
_LATE_US = limits.SECOND_US

#: Stages that alone explain so much of a window are a sign.
_STAGE_SIGN = 0.4

#: Points that a line has at most.
_POINTS_MAX = 300


class Load:
    """What was seen of one window."""

    def __init__(  # noqa: PLR0913 - each is one source
        self,
        *,
        start_us: Instant,
        end_us: Instant,
        starts: Iterable[Start],
        samples: Sequence[Sample],
        beats: Mapping[str, Sequence[Beat]],
        looks: Mapping[str, Iterable[Look]],
        cores: int,
        wall_clock_us: int,
        waits: Waits | None = None,
    ) -> None:
        """Take it.

        Args:
            start_us: begin of the window by the host's clock.
            end_us: its end, the last fire in it included.
            starts: as the ledgers have them.
            samples: of the window.
            beats: of the loops of executors, by the executor's name.
            looks: of the threads of nodes, by the node's name, where they kept some.
            cores: of the machine.
            wall_clock_us: the host's clock less its monotonic one.
            waits: of the database's sessions in the window; None: they were not sampled.
        """
        self.start_us = start_us
        self.end_us = end_us
        self.by_second: Counter[int] = Counter()
        self.done = 0  #: started inside the window
        lag = Distribution()
        for start in starts:  # There may be millions: none is kept.
            self.by_second[(start.started_us - start_us) // limits.SECOND_US] += 1
            self.done += start_us <= start.started_us < end_us
            lag.add(start.started_us - start.due_us)
        self.late_us = lag.percentiles().p99
        self.samples = samples
        self.beats = beats
        self.looks = looks
        self.cores = cores
        self.wall_clock_us = wall_clock_us
        self.waits = waits

    def explain(self) -> Attribution | None:
        """Return the attribution; None when there is nothing to explain it by."""
        done = self.done
        if len(self.samples) < 2 or not done:  # noqa: PLR2004 - a difference needs two
            return None
        wall_us = self.end_us - self.start_us
        used = self._used_us()
        busiest, told = self._busiest_node()
        resources = [
            self._resource("the cores", done, sum(used.values()), servers=self.cores),
            *(
                self._resource(
                    f"the interpreter of {name}", done, us, signs=_computing(told, wall_us) if name == busiest else ()
                )
                for name, us in used.items()
                if name != "database"
            ),
            *(self._loop(name, beats, done) for name, beats in self.beats.items()),
        ]
        flushing_us, waiting = flushes(self.waits, wall_us)
        if flushing_us:
            resources.append(self._resource("the flushes of the log", done, flushing_us, signs=waiting))
        found = attribute("window", jobs=done, wall_us=wall_us, stages=_stages(told), resources=resources, offered=True)
        found.processes = [
            Process(
                name=name,
                cpu_us=us,
                rss_peak_bytes=max(one.rss_bytes[name] for one in self.samples),
                main_thread_us=told.cpu_us if told and name == busiest else None,
            )
            for name, us in used.items()
        ]
        found.waits = self.waits
        if told is None:
            found.missing.append("stages: no node kept where the time of its thread went, or not to the window's end")
        elif len(self.looks) > 1:
            found.missing.append(f"stages of the other nodes: those of {busiest} are shown, which computed the most")
        return found

    def _busiest_node(self) -> tuple[str, Stages | None]:
        """Return the node whose thread computed the most, with its stages.

        While starts are punctual, a node with nothing under way has nothing to do; else that is unexplained.
        """
        rest = IDLE if self.late_us < _LATE_US else UNEXPLAINED
        begun_us, ended_us = self.start_us - self.wall_clock_us, self.end_us - self.wall_clock_us
        found = {
            name: told
            for name, looks in self.looks.items()
            if (told := thread_stages(looks, begun_us, ended_us, rest=rest)) is not None
        }
        if not found:
            return "", None
        busiest = max(found, key=lambda name: found[name].cpu_us)
        return busiest, found[busiest]

    def _used_us(self) -> dict[str, int]:
        """Return the CPU of each part in the window: what samples tell, by the window's length."""
        first, last = self.samples[0], self.samples[-1]
        share = (self.end_us - self.start_us) / max(1, last.at_us - first.at_us)
        return {name: round((last.cpu_us[name] - first.cpu_us[name]) * share) for name in last.cpu_us}

    def _resource(
        self, name: str, jobs: int, busy_us: int, *, servers: float = 1, signs: Sequence[Sign] = ()
    ) -> Resource:
        wall_us = self.end_us - self.start_us
        late_us = self.late_us
        queue = [Sign(kind="queue", text=f"the p99 of starts came {late_us / limits.SECOND_US:.1f} s late")]
        return resource(
            name,
            jobs=jobs,
            wall_us=wall_us,
            servers=servers,
            busy_us=busy_us,
            signs=[*signs, *(queue if late_us >= _LATE_US else [])],
        )

    def _loop(self, name: str, beats: Sequence[Beat], jobs: int) -> Resource:
        late_max_us = max((beat.late_max_us for beat in beats), default=0)
        signs = []
        if late_max_us >= _LATE_US:
            text = f"it answered nobody for up to {late_max_us / limits.SECOND_US:.1f} s: a handler blocks it"
            signs.append(Sign(kind="stage", text=text))
        return self._resource(
            f"the loop of {name}'s handlers", jobs, blocked_us(beats, self.start_us, self.end_us), signs=signs
        )

    def series(self) -> list[Series]:
        """Return lines over the window: starts, what is open, the oldest of it, CPU, log, operations of the disk."""
        found = [self._started(), *self._looked("open", "jobs", "open_entries", 1)]
        found += self._looked("oldest that is due", "ms", "oldest_us", limits.MS_US)
        for name in self.samples[0].cpu_us if self.samples else ():
            totals = [(one.at_us, one.cpu_us[name]) for one in self.samples]
            found.append(self._rate(f"CPU of {name}", "cores", totals, 1, limits.SECOND_US))
        log = [(one.at_us, one.wal_bytes) for one in self.samples if one.wal_bytes is not None]
        found.append(self._rate("write-ahead log", "bytes/s", log, 1))
        disk = [
            (one.at_us, one.disk_writes + (one.disk_reads or 0)) for one in self.samples if one.disk_writes is not None
        ]
        found += [
            self._rate(f"disk, each {looks} s", "operations/s", disk, looks) for looks in (SHORT_LOOKS, LONG_LOOKS)
        ]
        return [one for one in found if one.values]

    def _started(self) -> Series:
        seconds = _thinned(sorted(self.by_second))
        return Series(
            name="starts",
            unit="starts/s",
            at_s=[float(second) for second in seconds],
            values=[float(self.by_second[second]) for second in seconds],
        )

    def _looked(self, name: str, unit: str, field: str, divisor: int) -> list[Series]:
        looks = _thinned(self.samples)
        values = [getattr(one, field) / divisor for one in looks]
        return [Series(name=name, unit=unit, at_s=[self._at_s(one.at_us) for one in looks], values=values)]

    def _rate(self, name: str, unit: str, totals: Sequence[tuple[int, int]], looks: int, divisor: int = 1) -> Series:
        pairs = _thinned(list(zip(totals, totals[looks:], strict=False)))
        return Series(
            name=name,
            unit=unit,
            at_s=[self._at_s(last[0]) for _, last in pairs],
            values=[
                round((last[1] - first[1]) * limits.SECOND_US / divisor / max(1, last[0] - first[0]), 3)
                for first, last in pairs
            ],
        )

    def _at_s(self, monotonic_us: int) -> float:
        return round((monotonic_us + self.wall_clock_us - self.start_us) / limits.SECOND_US, 2)


def _stages(told: Stages | None) -> list[Stage]:
    if told is None:
        return []
    return [
        Stage(name=name, exclusive_us=us, in_flight=told.in_flight.get(name, 0.0))
        for name, us in told.exclusive_us.items()
        if us or name == UNEXPLAINED
    ]


def _computing(told: Stages | None, wall_us: int) -> list[Sign]:
    share = sum(told.exclusive_us.get(name, 0) for name in (*STEPS, COMPUTE)) / wall_us if told else 0.0
    text = f"stages in which it computes take {share:.0%} of the time"
    return [Sign(kind="stage", text=text)] if share >= _STAGE_SIGN else []


def _thinned(points: Sequence[PointT]) -> Sequence[PointT]:
    return points[:: max(1, -(-len(points) // _POINTS_MAX))]
