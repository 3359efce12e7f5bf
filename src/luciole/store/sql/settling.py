"""How entries are settled: the outcomes of attempts as a transaction script.

Plain successes, nearly all, go set-wise through `judge_successes` and `write_successes`. The rest is locked,
looked at, decided in Python and written.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from luciole import limits
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import AttemptOutcome, EntryState, Settled, Settlement
from luciole.store.bounds import stored_text
from luciole.store.reads import TROUBLED_STATES
from luciole.store.sql.cancelling import Group, groups_of, release
from luciole.store.sql.queries import is_shared
from luciole.store.sql.script import Query, Script

#: What counts against a retry limit.
_FAILURES = frozenset({AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT})

#: What `judge_successes` and `write_successes` take of each, in this order.
_SUCCESS_COLUMNS = (
    "shard",
    "schedule_id",
    "fire_us",
    "part",
    "attempt",
    "started_us",
    "finished_us",
    "executor_id",
    "result",
    "result_type",
)
_KEY = itemgetter(0)

#: A settlement and its place in the batch.
_Placed = tuple[int, Settlement]


def settle(settlements: Sequence[Settlement]) -> Script[tuple[Settled, ...]]:
    """Write the outcomes of attempts; see `OutboxStore.settle`."""
    if _are_plain(settlements):
        left = yield from _settle_plain(settlements, alone=True)
        if not left:
            return (Settled.SETTLED,) * len(settlements)
        answers = {place: Settled.SETTLED for place, item in enumerate(settlements) if item.key not in left}
        rest = [placed for placed in enumerate(settlements) if placed[1].key in left]
        yield from _settle_locked(rest, answers)
        return tuple(answers[place] for place in range(len(settlements)))
    answers = {}
    for turn in _turns(settlements):
        plain = [item for _, item in turn if _is_plain(item)]
        left = (yield from _settle_plain(plain, alone=False)) if plain else frozenset()
        rest = []
        for place, item in turn:
            if item.key in left or not _is_plain(item):
                rest.append((place, item))
            else:
                answers[place] = Settled.SETTLED
        if rest:
            yield from _settle_locked(rest, answers)
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


def _are_plain(items: Sequence[Settlement]) -> bool:
    """Whether all are plain, no two of one entry. Asked of whole columns: a burst has tens of thousands of them."""
    if not items:
        return False
    keys, _, states, outcomes, _, _, _, _, _, errors, _, _, releases = zip(*items, strict=True)
    count = len(items)
    return (
        states.count(ExecutionState.SUCCEEDED) == count
        and outcomes.count(AttemptOutcome.SUCCEEDED) == count
        and errors.count(None) == count
        and not any(releases)
        and len(set(keys)) == count
    )


def _settle_plain(items: Sequence[Settlement], *, alone: bool) -> Script[frozenset[ExecutionKey]]:
    """Settle plain successes; return the keys of those whose attempt is not the current one.

    Args:
        items: plain successes, at least one, no two of one entry.
        alone: they are all there is to settle: what is left of them changes nothing that is settled here.
    """
    items = sorted(items, key=_KEY)
    keys, attempts, _, _, *rest, kinds, _, _, _, _ = zip(*items, strict=True)
    texts = {kind: stored_text(kind, limits.NAME_LENGTH_MAX) for kind in set(kinds)}
    columns = (*zip(*keys, strict=True), attempts, *rest, tuple(map(texts.__getitem__, kinds)))
    rows = list(zip(*columns, strict=True))
    # I5, I6: the attempt token alone guards the write, and the entry is settled once.
    left = {ExecutionKey(*row) for row in (yield Query("judge_successes", rows=rows))}
    if left:
        rows = [row for row in rows if row[:4] not in left]
        columns = tuple(zip(*rows, strict=True))
    answer = yield Query("write_successes", _binds(columns), rows, alone=alone)
    return frozenset(left.union(ExecutionKey(*rows[place - 1][:4]) for (place,) in answer))


def _binds(columns: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return what a dialect takes that has the columns by name: a value that all rows share goes once, as `one_…`."""
    binds: dict[str, Any] = {"count": len(columns[0]) if columns else 0}
    for name, column in zip(_SUCCESS_COLUMNS, columns or ((),) * len(_SUCCESS_COLUMNS), strict=True):
        shared = not column or is_shared(column)
        binds[f"all_{name}"] = None if shared else column
        binds[f"one_{name}"] = column[0] if shared and column else None
    return binds


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
