"""Work: what a call costs, counted in lines, so that a busy machine makes no test fail."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import luciole

if TYPE_CHECKING:
    from _typeshed import TraceFunction

PACKAGE = str(Path(luciole.__file__).parent)


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of the package one call runs."""
    count = 0

    def count_lines(_: FrameType, event: str, __: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return count_lines

    def enter(frame: FrameType, _: str, __: object) -> TraceFunction | None:
        return count_lines if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
