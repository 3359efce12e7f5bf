"""The ledger that handlers append their starts to, held against what the store says; pure but for one file."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from luciole.bench.check import judge
from luciole.bench.result import Check
from luciole.model.ids import ExecutionKey, parse_execution_key

#: States of the store, as numbers: an executor ran it to its end.
_SUCCEEDED = 10


def read_ledger(path: Path) -> Counter[tuple[ExecutionKey, int]]:
    """Return how often each attempt started; a last line that a kill cut off does not count."""
    if not path.exists():
        return Counter()
    text = path.read_text(encoding="ascii")
    whole = text[: text.rfind("\n") + 1]
    lines = (line.split() for line in whole.splitlines())
    return Counter((parse_execution_key(words[0]), int(words[1])) for words in lines)


def reconcile(
    starts: Counter[tuple[ExecutionKey, int]], executions: Iterable[tuple[int, int, int, int, int, int]]
) -> list[Check]:
    """Judge starts by executions: each attempt starts at most once, what succeeded has started, nothing is invented.

    Args:
        starts: of the ledger.
        executions: (shard, schedule, fire time, part, attempt, state) of the store.
    """
    attempts: dict[ExecutionKey, int] = {}
    unstarted = 0
    for *key, attempt, state in executions:
        execution = ExecutionKey(*key)
        attempts[execution] = attempt
        if state == _SUCCEEDED and (execution, attempt) not in starts:
            unstarted += 1
    twice = sum(count - 1 for count in starts.values())
    invented = sum(attempt > attempts.get(key, 0) for key, attempt in starts)
    return [
        judge("ledger_starts", "report", "> 0", len(starts), {}),
        judge("ledger_attempts_started_twice", "report", "= 0", twice, {}),
        judge("ledger_starts_unknown_to_the_store", "report", "= 0", invented, {}),
        judge("ledger_succeeded_without_a_start", "report", "= 0", unstarted, {}),
    ]
