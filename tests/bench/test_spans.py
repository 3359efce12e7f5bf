"""The time of a window is given to stages, each microsecond to one."""

from luciole.bench.spans import Span, exclusive_stages

ORDER = ("commit_plan", "due_cursors")


def test_the_first_stage_under_way_has_the_time_and_the_rest_is_unexplained() -> None:
    spans = [
        Span("due_cursors", 100, 200, None),
        Span("commit_plan", 150, 300, None),
        Span("commit_plan", 250, 400, None),
        Span("settle", 0, 1_000, None),
    ]
    stages = exclusive_stages(spans, ORDER, 50, 450)
    assert stages == {"commit_plan": 250, "due_cursors": 50, "unexplained": 100}


def test_what_lies_outside_the_window_does_not_count() -> None:
    spans = [Span("commit_plan", 0, 60, None), Span("due_cursors", 90, 500, None), Span("commit_plan", 600, 700, None)]
    stages = exclusive_stages(spans, ORDER, 50, 100)
    assert stages == {"commit_plan": 10, "due_cursors": 10, "unexplained": 30}


def test_stages_always_add_up_to_the_window() -> None:
    spans = [Span(ORDER[n % 2], n * 7 % 100, n * 7 % 100 + n, None) for n in range(50)]
    assert sum(exclusive_stages(spans, ORDER, 10, 90).values()) == 80
