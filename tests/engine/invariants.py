"""The invariants, checked by reading the store and the ledgers of the executors, never the node's own counters."""

from collections import Counter
from itertools import pairwise

from luciole.model.execution import ExecutionState, ExecutionView
from luciole.model.ids import ExecutionKey
from luciole.model.job import Overlap
from luciole.model.outbox import AttemptOutcome
from luciole.model.trigger import trigger_from_spec
from luciole.store.reads import ScheduleFilter
from tests.engine.scripted import ScriptedExecutor, SmallCluster

#: What an attempt that was followed by another came to.
FOLLOWED = frozenset(
    {
        AttemptOutcome.FAILED,
        AttemptOutcome.TIMED_OUT,
        AttemptOutcome.LOST,
        AttemptOutcome.RETURNED,
        AttemptOutcome.UNKNOWN_HANDLER,
    }
)


async def check(cluster: SmallCluster, executors: list[ScriptedExecutor]) -> list[str]:
    """Return every violation that can be seen from outside."""
    views = await cluster.executions()
    full = [await cluster.view(view.key) for view in views]
    problems = [problem for view in full for problem in _of_execution(view)]
    problems += _of_starts(executors, {view.key: view for view in full})
    problems += await _of_fire_times(cluster, views)
    problems += await _of_overlaps(cluster, views)
    return problems


def _of_execution(view: ExecutionView) -> list[str]:
    name = view.key.text()
    # Lost: no outcome.
    problems = [] if view.state.terminal else [f"{name}: open as {view.state.name} at the end"]
    recorded = {attempt.attempt: attempt.outcome for attempt in view.attempts}
    # Doubled: a second attempt without a recorded failure or loss.
    return problems + [
        f"{name}: attempt {attempt} was followed, but came to {recorded.get(attempt)}"
        for attempt in range(1, view.attempt)
        if recorded.get(attempt) not in FOLLOWED
    ]


def _of_starts(executors: list[ScriptedExecutor], views: dict[ExecutionKey, ExecutionView]) -> list[str]:
    starts = Counter((key, attempt) for executor in executors for key, attempt, _ in executor.starts)
    # I6: one token goes to one session only, once.
    problems = [f"{key.text()}: attempt {attempt} started {n} times" for (key, attempt), n in starts.items() if n > 1]
    for executor in executors:
        for key, attempt, at_us in executor.starts:
            view = views.get(key)
            # I11: never before it is due.
            if view is not None and attempt == 1 and at_us < key.fire_us:
                problems.append(f"{key.text()}: started {key.fire_us - at_us} us early")
    problems += [
        f"{view.key.text()}: succeeded, and nobody started it"
        for view in views.values()
        if view.state is ExecutionState.SUCCEEDED and (view.key, view.attempt) not in starts
    ]
    return problems


async def _of_fire_times(cluster: SmallCluster, views: tuple[ExecutionView, ...]) -> list[str]:
    """I4: every due fire time ends in exactly one outcome: an execution, or a place in the ledger."""
    problems = []
    fired = Counter(view.key.schedule_id for view in views if view.key.part >= 0)
    for schedule in (await cluster.reader.list_schedules(ScheduleFilter())).rows:
        trigger = trigger_from_spec(schedule.spec.trigger)
        ledger = await cluster.reader.list_ledger(schedule.schedule_id, schedule.shard, limit=1_000)
        outcomes = fired[schedule.schedule_id] + sum(row.fires for row in ledger)
        until_us = cluster.clock.now_us() if schedule.fire_us is None else schedule.fire_us - 1
        due = trigger.count(schedule.created_us, until_us)
        if outcomes != due:
            problems.append(f"{schedule.spec.name}: {due} fire times, {outcomes} outcomes")
        if schedule.due_us is not None and schedule.due_us < cluster.clock.now_us() - 2_000_000:
            problems.append(f"{schedule.spec.name}: its cursor stands still")
    return problems


async def _of_overlaps(cluster: SmallCluster, views: tuple[ExecutionView, ...]) -> list[str]:
    """Forbidden, an execution is made when the one before it has ended; waiting, it starts then."""
    problems = []
    for schedule in (await cluster.reader.list_schedules(ScheduleFilter())).rows:
        overlap = schedule.spec.policy.overlap
        if overlap is Overlap.ALLOW:
            continue
        mine = sorted((view for view in views if view.key.schedule_id == schedule.schedule_id), key=lambda it: it.key)
        problems += [
            f"{schedule.spec.name}: {later.key.text()} beside {earlier.key.text()} under {overlap.value}"
            for earlier, later in pairwise(mine)
            if (begun_us := later.created_us if overlap is Overlap.FORBID else later.started_us) is not None
            and (earlier.finished_us is None or begun_us < earlier.finished_us)
        ]
    return problems
