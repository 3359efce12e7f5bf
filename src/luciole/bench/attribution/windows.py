"""Why a window was as fast as it was: from what the processes of it tell to ceilings; pure."""

from collections.abc import Mapping, Sequence

from luciole.bench.attribution.ceilings import attribute, resource
from luciole.bench.attribution.document import Attribution, Process, Resource, Sign, Stage, Waits
from luciole.bench.attribution.parts import Used
from luciole.bench.attribution.postgres import flushes
from luciole.bench.attribution.watching import Told

#: A stage that alone explains so much of a window is a sign.
STAGE_SIGN = 0.4

#: So many waiting on average are a queue.
QUEUE_SIGN = 0.5

#: So much of the cores used by others belongs into the name of what was left.
OTHERS_SHOWN = 0.1

#: So many commits a job are a finding of their own.
COMMITS_SIGN = 0.5

#: Stages in which a scheduler computes itself.
_COMPUTING = ("decide", "deliver", "gc", "commit_stride", "commit_plan", "due_groups", "due_cursors", "settle")


class Window:
    """All that was observed of one window."""

    def __init__(  # noqa: PLR0913 - each is one source
        self,
        name: str,
        *,
        jobs: int,
        told: Mapping[str, Told],
        begun_us: int,
        cores: int,
        others: float,
        connections: int,
        used: Mapping[str, Used],
        waits: Waits | None,
        commits_per_job: float,
        embedded: bool,
        offered: bool = False,
    ) -> None:
        """Take what was observed.

        Args:
            name: such as "drain".
            jobs: done in it.
            told: of each process that did it, by its name.
            begun_us: its begin by the monotonic clock; it ends when the last of them has ended.
            cores: of the machine.
            others: how many of them processes that are no part of this used, on average.
            connections: that all of them together may use for it.
            used: by each part.
            waits: of the server's sessions.
            commits_per_job: calls that commit, by jobs.
            embedded: the store is a file that they write themselves.
            offered: its rate is that of the load, not the most that it could do.
        """
        self.name = name
        self.jobs = jobs
        self.told = told
        self.slowest = max(told.values(), key=lambda one: one.ended_us)
        self.wall_us = max(1, self.slowest.ended_us - begun_us)
        self.cores = cores
        self.others = others
        self.connections = connections
        self.used = used
        self.waits = waits
        self.commits_per_job = commits_per_job
        self.embedded = embedded
        self.offered = offered

    def explain(self) -> Attribution:
        """Return the attribution."""
        found = attribute(
            self.name,
            jobs=self.jobs,
            wall_us=self.wall_us,
            stages=self._stages(),
            offered=self.offered,
            resources=[self._cores(), *self._interpreters(), self._connections(), *self._flushes(), *self._writers()],
        )
        if self.commits_per_job >= COMMITS_SIGN:
            found.sentence += (
                f" It makes {self.commits_per_job:.2f} commits a job: jobs that share one would share its cost."
            )
        found.waits = self.waits
        found.processes = self._processes()
        return found

    def _stages(self) -> list[Stage]:
        return [
            Stage(name=name, exclusive_us=us, in_flight=self.slowest.in_flight.get(name, 0.0))
            for name, us in self.slowest.stages_us.items()
            if us or name == "unexplained"
        ]

    def _resource(
        self, name: str, servers: float, busy_us: int, signs: Sequence[Sign] = (), *, passive: bool = False
    ) -> Resource:
        return resource(
            name,
            jobs=self.jobs,
            wall_us=self.wall_us,
            servers=servers,
            busy_us=busy_us,
            passive=passive,
            signs=signs,
        )

    def _cores(self) -> Resource:
        waiting = sum(used.run_delay_us for used in self.used.values()) / self.wall_us
        signs = []
        if waiting >= QUEUE_SIGN:
            signs.append(Sign(kind="queue", text=f"{waiting:.1f} threads were ready and had no core, on average"))
        cores = f"the {self.cores} cores"
        if self.others >= OTHERS_SHOWN:
            cores += f" (less {self.others:.1f} that others used)"
        left = max(self.cores - self.others, sum(used.cpu_us for used in self.used.values()) / self.wall_us)
        return self._resource(cores, round(left, 3), sum(used.cpu_us for used in self.used.values()), signs)

    def _interpreters(self) -> list[Resource]:
        """One lock each: only one thread of a process runs Python at a time."""
        found = []
        for name, told in self.told.items():
            computing = sum(told.stages_us.get(stage, 0) for stage in told.computing or _COMPUTING) / self.wall_us
            signs = []
            if computing >= STAGE_SIGN:
                signs.append(Sign(kind="stage", text=f"stages in which it computes take {computing:.0%} of the time"))
            share = self._resource(f"the interpreter of {name}", 1, told.main_thread_us, signs)
            found.append(share)
        if len(found) > 1:  # They share the work: all are full when the busiest is.
            busiest = max(range(len(found)), key=lambda index: found[index].busy_us)
            return [found[busiest]]
        return found

    def _connections(self) -> Resource:
        held = sum(
            told.in_flight.get("connection", 0.0) * (told.ended_us - told.begun_us) for told in self.told.values()
        )
        line = sum(told.in_flight.get("wait_connection", 0.0) for told in self.told.values())
        signs = []
        if line >= QUEUE_SIGN:
            signs.append(Sign(kind="queue", text=f"{line:.1f} calls stood in line for one, on average"))
        plural = "s" if self.connections > 1 else ""
        return self._resource(
            f"the {self.connections} connection{plural}", self.connections, round(held), signs, passive=True
        )

    def _flushes(self) -> list[Resource]:
        """The log is flushed by one process at a time."""
        if self.embedded:
            flushing = sum(
                round(told.in_flight.get("commit", 0.0) * (told.ended_us - told.begun_us))
                for told in self.told.values()
            )
            waiting: list[Sign] = []
        else:
            flushing, waiting = flushes(self.waits, self.wall_us)
        if not flushing:
            return []
        signs = [*self._commit_signs(("commit",), "commits take {:.0%} of the time"), *waiting]
        return [self._resource("the flushes of the log", 1, flushing, signs)]

    def _writers(self) -> list[Resource]:
        """A file has one writer at a time, whoever it is."""
        if not self.embedded:
            return []
        writing = sum(
            told.in_flight.get(step, 0.0) * (told.ended_us - told.begun_us)
            for told in self.told.values()
            for step in ("statement", "commit")
        )
        signs = self._commit_signs(("statement", "commit", "lock"), "writing stages take {:.0%} of the time")
        return [self._resource("the one writer of the file", 1, round(writing), signs)]

    def _commit_signs(self, names: Sequence[str], text: str) -> list[Sign]:
        signs = []
        share = sum(self.slowest.stages_us.get(name, 0) for name in names) / self.wall_us
        if share >= STAGE_SIGN:
            signs.append(Sign(kind="stage", text=text.format(share)))
        if self.commits_per_job >= COMMITS_SIGN:
            signs.append(Sign(kind="work", text=f"{self.commits_per_job:.2f} commits a job"))
        return signs

    def _processes(self) -> list[Process]:
        told = self.told
        return [
            Process(
                name=name,
                cpu_us=used.cpu_us,
                run_delay_us=used.run_delay_us,
                rss_peak_bytes=used.rss_bytes,
                main_thread_us=told[name].main_thread_us if name in told else None,
                gc_pauses=told[name].gc_pauses if name in told else 0,
                gc_pauses_us=told[name].gc_pauses_us if name in told else 0,
                stalls_us=told[name].stalls_us if name in told else 0,
                stall_max_us=told[name].stall_max_us if name in told else 0,
            )
            for name, used in self.used.items()
        ]
