"""The ways of single jobs: chosen so that the slowest are there, in a form that viewers read."""

from luciole.bench.attribution.traces import RANDOM, SLOWEST, Ways, choose, chrome_trace, merge
from luciole.bench.spans import Span
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Entry


def entry(number: int) -> Entry:
    return Entry(
        key=ExecutionKey(0, number, 1_000, 0), due_us=1_000, priority=0, attempt=1, failures=0, job_id=1, flags=0
    )


def test_a_way_is_put_together_from_the_calls_that_carried_the_job() -> None:
    ways = Ways()
    ways.due_us = 100
    ways.committed([entry(1), entry(2)], Span("commit_stride", 110, 150, None))
    ways.settled([entry(1), entry(2)], 180, 200)
    assert [trace.stages for trace in ways.traces()] == [
        [("wait for the planner", 0, 10), ("commit", 10, 50), ("held", 50, 80), ("settle", 80, 100)]
    ] * 2


def test_the_slowest_are_all_there_and_the_random_ones_are_the_same_each_time() -> None:
    ways = {ExecutionKey(0, n, 1, 0): [("settle", 0, n)] for n in range(1_000)}
    chosen = choose(ways)
    assert [trace.stages[-1][2] for trace in chosen[:SLOWEST]] == list(range(999, 999 - SLOWEST, -1))
    assert len(chosen) == SLOWEST + RANDOM
    assert chosen == choose(dict(reversed(ways.items())))


def test_of_several_processes_the_slowest_of_all_are_kept() -> None:
    parts = [choose({ExecutionKey(0, n, 1, 0): [("settle", 0, n)] for n in range(at, 1_000, 2)}) for at in (0, 1)]
    kept = merge(parts)
    assert [trace.stages[-1][2] for trace in kept[:SLOWEST]] == list(range(999, 999 - SLOWEST, -1))
    assert len(kept) == SLOWEST + RANDOM


def test_a_chrome_trace_has_a_complete_event_for_each_stage() -> None:
    traces = choose({ExecutionKey(0, 7, 1, 0): [("commit", 5, 9), ("settle", 9, 9)]})
    events = chrome_trace(traces)["traceEvents"]
    assert isinstance(events, list)
    assert [(event["ph"], event.get("ts"), event.get("dur")) for event in events] == [
        ("M", None, None),
        ("X", 5, 4),
        ("X", 9, 0),
    ]
