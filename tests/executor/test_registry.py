"""The registry of handlers: what it takes, where each runs, and what it refuses."""

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from luciole.errors import AlreadyExists, InvalidValue
from luciole.executor.registry import HandlerOptions, HandlerRegistry
from luciole.model.job import RunIn


async def charge(order_id: int) -> int:
    return order_id


def crunch(size: int) -> int:
    return size


async def stream() -> AsyncIterator[int]:
    yield 1


@functools.wraps(crunch)
def wrapped(*args: int, **kwargs: int) -> int:
    return crunch(*args, **kwargs)


@pytest.mark.parametrize(
    ("function", "asked", "wanted", "runs_in"),
    [
        (charge, None, None, RunIn.ASYNC),
        (crunch, None, None, RunIn.THREAD),
        (crunch, RunIn.PROCESS, None, RunIn.PROCESS),
        (charge, RunIn.PROCESS, None, RunIn.PROCESS),
        (crunch, None, RunIn.PROCESS, RunIn.PROCESS),
        (crunch, RunIn.PROCESS, RunIn.THREAD, RunIn.THREAD),
        (crunch, None, RunIn.ASYNC, RunIn.THREAD),  # It can't: the handler's own place stands.
        (charge, None, RunIn.THREAD, RunIn.ASYNC),
        (wrapped, RunIn.PROCESS, None, RunIn.PROCESS),
    ],
)
def test_a_handler_runs_where_its_job_says_else_where_it_fits(
    function: Callable[..., Any], asked: RunIn | None, wanted: RunIn | None, runs_in: RunIn
) -> None:
    handler = HandlerRegistry().add("h", function, HandlerOptions(run_in=asked))
    assert handler.place(wanted) is runs_in


def test_a_handler_that_another_process_can_not_import_does_not_run_there() -> None:
    registry = HandlerRegistry()
    with pytest.raises(InvalidValue, match=r"define .*lambda.* at the top of a module"):
        registry.add("h", lambda: 1, HandlerOptions(run_in=RunIn.PROCESS))
    assert registry.add("h", lambda: 1).place(RunIn.PROCESS) is RunIn.THREAD


@pytest.mark.parametrize(
    ("name", "function", "run_in", "seen"),
    [
        ("", charge, None, "is no name"),
        ("a\nb", charge, None, "is no name"),
        ("x" * 201, charge, None, "is no name"),
        ("h", stream, None, "is a generator"),
        ("h", HandlerRegistry, None, "is a class"),
        ("h", crunch, RunIn.ASYNC, "needs an async function"),
        ("h", charge, RunIn.THREAD, "needs a plain function"),
    ],
)
def test_what_can_not_be_a_handler_is_refused(
    name: str, function: Callable[..., Any], run_in: RunIn | None, seen: str
) -> None:
    registry = HandlerRegistry()
    with pytest.raises(InvalidValue, match=seen):
        registry.add(name, function, HandlerOptions(run_in=run_in))
    assert registry.names() == ()


def test_one_name_is_one_function() -> None:
    registry = HandlerRegistry()
    registry.add("h", charge)
    registry.add("h", charge)
    with pytest.raises(AlreadyExists, match=r"handler h: .*charge has this name already"):
        registry.add("h", crunch)
    assert registry.names() == ("h",)


def test_an_annotation_that_names_nothing_is_refused_once_all_is_imported() -> None:
    def handler(order: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821 - that is the point
        del order

    registry = HandlerRegistry()
    registry.add("h", handler)
    with pytest.raises(InvalidValue, match="h: an annotation can't be resolved: name 'Missing'"):
        registry.check()
