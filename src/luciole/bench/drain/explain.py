"""Why a drain was as fast as it was: where the time of its node went, and which ceilings it came near; pure."""

from collections.abc import Mapping, Sequence

from luciole.bench.attribution.ceilings import UNEXPLAINED, attribute, resource
from luciole.bench.attribution.document import Attribution, Process, Resource, Sign, Stage, Waits
from luciole.bench.attribution.parts import Used
from luciole.bench.attribution.postgres import flushes
from luciole.bench.attribution.threads import COMPUTE, STEPS, WAIT_EXECUTORS, Look, Stages, last_end_us, thread_stages

#: The parts, as results name them.
NODE, EXECUTOR, DATABASE = "node", "executor", "database"

#: Stages that alone explain so much of a window are a sign.
STAGE_SIGN = 0.4

#: So many waiting on average are a queue.
QUEUE_SIGN = 0.5

#: So much of the cores used by others belongs into the name of what was left.
OTHERS_SHOWN = 0.1


def explain_drain(
    *,
    jobs: int,
    begun_us: int,
    ended_us: int,
    looks: Sequence[Look],
    used: Mapping[str, Used],
    cores: int,
    others: float,
    waits: Waits | None = None,
) -> Attribution:
    """Return the attribution of a drain.

    Args:
        jobs: drained in it.
        begun_us: the instant at which all became due, by the monotonic clock.
        ended_us: when the outbox was seen empty.
        looks: at the thread of the node's event loop.
        used: by each part in the window.
        cores: of the machine.
        others: how many of them processes that are no part of this used, on average.
        waits: of the database's sessions.
    """
    wall_us = ended_us - begun_us
    done_us = last_end_us(looks, "settle", ended_us)
    told = thread_stages(looks, begun_us, ended_us, rest=UNEXPLAINED, done_us=done_us or None)
    exclusive_us = told.exclusive_us if told else {}
    stages = [
        Stage(name=name, exclusive_us=us, in_flight=told.in_flight.get(name, 0.0) if told else 0.0)
        for name, us in exclusive_us.items()
        if us or name == UNEXPLAINED
    ]

    def share_of(name: str, servers: float, busy_us: int, signs: Sequence[Sign]) -> Resource:
        return resource(name, jobs=jobs, wall_us=wall_us, servers=servers, busy_us=busy_us, signs=signs)

    def stage_sign(names: Sequence[str], text: str) -> list[Sign]:
        share = sum(exclusive_us.get(name, 0) for name in names) / wall_us
        return [Sign(kind="stage", text=text.format(share))] if share >= STAGE_SIGN else []

    all_us = sum(one.cpu_us for one in used.values())
    resources = [
        share_of(
            f"the {cores} cores" + (f" (less {others:.1f} that others used)" if others >= OTHERS_SHOWN else ""),
            round(max(cores - others, all_us / wall_us), 3),
            all_us,
            _queue(sum(one.run_delay_us for one in used.values()) / wall_us),
        ),
        share_of(
            "the interpreter of the node",
            1,
            told.cpu_us if told else used[NODE].cpu_us,
            stage_sign((*STEPS, COMPUTE), "stages in which it computes take {:.0%} of the time"),
        ),
        share_of(
            "the interpreter of the executor",
            1,
            used[EXECUTOR].cpu_us,
            stage_sign((WAIT_EXECUTORS,), "for {:.0%} of the time the node had nothing to do but wait for it"),
        ),
    ]
    flushing_us, waiting = flushes(waits, wall_us)
    if flushing_us:
        resources.append(share_of("the flushes of the log", 1, flushing_us, waiting))
    found = attribute("drain", jobs=jobs, wall_us=wall_us, stages=stages, resources=resources)
    found.processes = _processes(used, told)
    found.waits = waits
    found.missing = _missing(waits, told, used)
    return found


def _missing(waits: Waits | None, told: Stages | None, used: Mapping[str, Used]) -> list[str]:
    missing = []
    if waits is None:
        missing.append("waits of the database and flushes of its log: run it with --sample-waits")
    if told is None:
        missing.append("stages: the looks at the node's thread do not reach over the window")
    if DATABASE not in used:
        missing.append("CPU of the database: it is no server of the bench's own")
    return missing


def _processes(used: Mapping[str, Used], told: Stages | None) -> list[Process]:
    return [
        Process(
            name=name,
            cpu_us=one.cpu_us,
            run_delay_us=one.run_delay_us,
            rss_peak_bytes=one.rss_bytes,
            main_thread_us=told.cpu_us if told and name == NODE else None,
        )
        for name, one in used.items()
    ]


def _queue(waiting: float) -> list[Sign]:
    text = f"{waiting:.1f} threads were ready and had no core, on average"
    return [Sign(kind="queue", text=text)] if waiting >= QUEUE_SIGN else []
