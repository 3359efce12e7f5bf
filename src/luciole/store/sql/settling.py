"""How entries are settled: the outcomes of attempts as a transaction script.

Plain successes, nearly all, go set-wise through `judge_successes` and `write_successes`. The rest is locked,
looked at, decided in Python and written.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from luciole import limits
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import AttemptOutcome, EntryState, Settled, Settlement
from luciole.store.bounds import stored_text
from luciole.store.reads import TROUBLED_STATES
from luciole.store.sql.cancelling import Group, groups_of, release
from luciole.store.sql.script import Query, Script

#: What counts against a retry limit.
_FAILURES = frozenset({AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT})

#: A settlement and its place in the batch.
_Placed = tuple[int, Settlement]


def settle(settlements: Sequence[Settlement]) -> Script[tuple[Settled, ...]]:
    """Write the outcomes of attempts; see `OutboxStore.settle`."""
    answers: dict[int, Settled] = {}
    turns = list(_turns(settlements))
    for turn in turns:
        plain = [placed for placed in turn if _is_plain(placed[1])]
        rest = [placed for placed in turn if not _is_plain(placed[1])]
        rest += yield from _settle_plain(plain, answers, alone=len(turns) == 1 and not rest)
        if rest:
            yield from _settle_locked(sorted(rest), answers)
    return tuple(answers[place] for place in range(len(settlements)))


def _turns(settlements: Sequence[Settlement]) -> Iterable[list[_Placed]]:
    """Part a batch so that no two of a turn touch the same entry, by key or by releasing it."""
    releasing = {item.key[:2] for item in settlements if item.releases}
    turn: list[_Placed] = []
    taken: set[tuple[int, ...]] = set()
    for place, item in enumerate(settlements):
        touched: tuple[int, ...] = item.key[:2] if item.key[:2] in releasing else item.key
        if touched in taken:
            yield turn
            turn, taken = [], set()
        turn.append((place, item))
        taken.add(touched)
    yield turn


def _is_plain(item: Settlement) -> bool:
    return (
        item.state is ExecutionState.SUCCEEDED
        and item.outcome is AttemptOutcome.SUCCEEDED
        and not item.releases
        and item.error is None
    )


def _settle_plain(turn: Sequence[_Placed], answers: dict[int, Settled], *, alone: bool) -> Script[list[_Placed]]:
    """Settle plain successes; return those whose attempt is not the current one.

    Args:
        turn: plain successes, no two of one entry.
        answers: gets those that are settled.
        alone: they are all there is to settle: what is left of them changes nothing that is settled here.
    """
    rows = sorted(
        (*key, attempt, started_us, finished_us, executor_id, result, stored_text(kind, limits.NAME_LENGTH_MAX))
        for _, (key, attempt, _, _, started_us, finished_us, executor_id, result, kind, *_) in turn
    )
    # I5, I6: the attempt token alone guards the write, and the entry is settled once.
    left = {ExecutionKey(*row) for row in (yield Query("judge_successes", rows=rows))}
    if left:
        rows = [row for row in rows if row[:4] not in left]
    left |= {ExecutionKey(*row) for row in (yield Query("write_successes", rows=rows, alone=alone))}
    for place, item in turn:
        if item.key not in left:
            answers[place] = Settled.SETTLED
    return [placed for placed in turn if placed[1].key in left] if left else []


def _settle_locked(turn: Sequence[_Placed], answers: dict[int, Settled]) -> Script[None]:
    # The cursor comes before the entries, and who waits is looked at after both: a plan can't slip in between.
    yield Query("lock_cursors", rows=groups_of(item.key for _, item in turn if item.releases))
    rows = yield Query("lock_entries", rows=sorted(item.key for _, item in turn))
    locked = {ExecutionKey(*row[:4]): row for row in rows}
    current, others = [], []
    for place, item in turn:
        row = locked.get(item.key)
        # I5, I6: the attempt token alone guards the write, and the entry is settled once.
        if row is not None and row[4] == item.attempt and row[5] != EntryState.WAITING:
            current.append(item)
            answers[place] = Settled.SETTLED
        else:
            others.append((place, item))
    yield from _answer_others(others, answers)
    parked = sorted(item.key for item in current if locked[item.key][5] == EntryState.PARKED)
    yield Query("delete_failures", rows=parked)  # One that stays in trouble is put there anew.
    yield from _write(current)


def _answer_others(others: Sequence[_Placed], answers: dict[int, Settled]) -> Script[None]:
    """Confirm what is recorded already, refuse what is not; nothing changes."""
    rows = yield Query("recorded_outcomes", rows=sorted({(*item.key, item.attempt) for _, item in others}))
    recorded = {}
    for *key, attempt, state, last_attempt, outcome in rows:
        if outcome is None and state == ExecutionState.SUCCEEDED and attempt == last_attempt:
            outcome = AttemptOutcome.SUCCEEDED.value  # noqa: PLW2901 - a success leaves no row of its own
        recorded[ExecutionKey(*key), attempt] = outcome
    for place, item in others:
        same = recorded.get((item.key, item.attempt)) == item.outcome.value
        answers[place] = Settled.CONFIRMED if same else Settled.REFUSED


def _write(items: Sequence[Settlement]) -> Script[None]:
    ended = sorted((item for item in items if item.state.terminal), key=lambda item: item.key)
    goes_on = sorted((item for item in items if not item.state.terminal), key=lambda item: item.key)
    yield Query("end_executions", rows=[_end_row(item) for item in ended])
    yield Query("delete_entries", rows=[item.key for item in ended])
    yield Query(
        "continue_executions",
        rows=[(*item.key, int(item.state), item.attempt + 1, item.due_us, _error(item)) for item in goes_on],
    )
    yield Query("continue_entries", rows=[_entry_row(item) for item in goes_on])
    yield Query("insert_attempts", rows=sorted(_attempt_row(item) for item in items if _leaves_row(item)))
    yield Query(
        "put_failures",
        rows=sorted((*item.key, int(item.state), item.finished_us) for item in items if item.state in TROUBLED_STATES),
    )
    releasing: Counter[Group] = Counter((item.key.shard, item.key.schedule_id) for item in ended if item.releases)
    if releasing:
        yield from release(releasing)


def _leaves_row(item: Settlement) -> bool:
    return item.outcome is not AttemptOutcome.SUCCEEDED


def _error(item: Settlement) -> str | None:
    return stored_text(item.error, limits.ERROR_TEXT_LENGTH_MAX)


def _end_row(item: Settlement) -> tuple[object, ...]:
    ends = (int(item.state), item.started_us, item.finished_us, item.executor_id)
    return (*item.key, *ends, item.result, stored_text(item.result_type, limits.NAME_LENGTH_MAX), _error(item))


def _entry_row(item: Settlement) -> tuple[object, ...]:
    state = EntryState.PARKED if item.state is ExecutionState.PARKED else EntryState.READY
    failed = int(item.outcome in _FAILURES)
    return (*item.key, int(state), item.attempt + 1, item.due_us, failed, int(item.counts_loss))


def _attempt_row(item: Settlement) -> tuple[object, ...]:
    times = (item.started_us, item.finished_us)
    return (*item.key, item.attempt, item.outcome.value, _error(item), item.executor_id, *times)
