"""`luciole executions`."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from luciole import limits
from luciole.cli.documents import content, execution_document
from luciole.cli.options import namespace_option, store_options, with_store
from luciole.cli.output import (
    Column,
    distance,
    first_line,
    moment,
    print_facts,
    print_json,
    print_rows,
    print_table,
    printable,
    span,
    state_word,
)
from luciole.cli.progress import Progress
from luciole.client.client import Client
from luciole.errors import ExecutionFailed, InvalidValue
from luciole.model.duration import duration_us
from luciole.model.execution import ExecutionState, ExecutionView
from luciole.model.ids import NO_SCHEDULE, parse_execution_key
from luciole.model.instant import Instant
from luciole.runtime.clock import SystemClock
from luciole.service import executions as use
from luciole.service.schedules import find_schedule
from luciole.store.reads import OPEN_STATES, TROUBLED_STATES, ExecutionFilter
from luciole.store.spi import Store

#: Words for several states at once, beside the states themselves.
_GROUPS = {"open": OPEN_STATES, "troubled": TROUBLED_STATES}
_STATES = [*_GROUPS, *(state_word(state) for state in ExecutionState)]

#: How often a person is shown how it stands.
_LOOK_S = 0.5

_COLUMNS = (
    Column(title="id"),
    Column(title="handler", shrinks=True),
    Column(title="state"),
    Column(title="attempt", right=True),
    Column(title="due"),
    Column(title="took", right=True),
    Column(title="note", shrinks=True),
)


@click.group()
def executions() -> None:
    """List, show, await, cancel and retry executions."""


@executions.command("list")
@click.option("--schedule", help="Only of this schedule, newest first.")
@click.option("--enqueued", is_flag=True, help="Only those of no schedule, newest first.")
@namespace_option
@click.option("--state", "states", multiple=True, type=click.Choice(_STATES), help="Only in this state; repeatable.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000), help="So many at most.")
@store_options
def list_(
    schedule: str | None,
    enqueued: bool,  # noqa: FBT001 - an option is passed by its name
    namespace: str,
    states: tuple[str, ...],
    limit: int,
    dsn: str,
    *,
    as_json: bool,
) -> None:
    """List executions: of a schedule, open ones, troubled ones, or all."""
    if schedule is not None and enqueued:
        raise InvalidValue("executions list: --schedule and --enqueued exclude each other; keep one")

    async def read(store: Store) -> tuple[Instant, list[ExecutionView], bool]:
        query = ExecutionFilter(states=_read_states(states), schedule_id=NO_SCHEDULE if enqueued else None)
        if schedule is not None:
            query = replace(query, schedule_id=(await find_schedule(store, namespace, schedule)).schedule_id)
        rows: list[ExecutionView] = []
        while True:
            page = await use.list_executions(store, replace(query, limit=min(limits.PAGE_MAX, limit - len(rows))))
            rows += page.rows
            query = replace(query, page=page.next)
            if page.next is None or len(rows) >= limit:
                return await store.now_us(), rows, page.next is not None

    now_us, rows, more = with_store(dsn, read)
    empty = "No such executions."
    print_rows(rows, execution_document, _COLUMNS, lambda row: _cells(row, now_us), as_json=as_json, empty=empty)
    if more and not as_json:
        click.secho(f"… and more: raise --limit above {limit}, or filter with --state or --schedule", dim=True)


@executions.command()
@click.argument("execution_id")
@store_options
def show(execution_id: str, dsn: str, *, as_json: bool) -> None:
    """Show an execution with its recorded attempts."""
    key = parse_execution_key(execution_id)

    async def read(store: Store) -> tuple[Instant, ExecutionView]:
        return await store.now_us(), await use.find_execution(store, key)

    now_us, view = with_store(dsn, read)
    if as_json:
        print_json(execution_document(view))
        return
    _print_execution(view, now_us)
    if view.attempts:
        click.echo()
        columns = (
            Column(title="attempt", right=True),
            Column(title="outcome"),
            Column(title="finished"),
            Column(title="took", right=True),
            Column(title="executor"),
            Column(title="error", shrinks=True),
        )
        rows = [
            (
                str(attempt.attempt),
                attempt.outcome,
                moment(attempt.finished_us),
                _took(attempt.started_us, attempt.finished_us),
                attempt.executor_id or "-",
                first_line(attempt.error),
            )
            for attempt in view.attempts
        ]
        print_table(columns, rows, empty="")


@executions.command()
@click.argument("execution_id")
@click.option("--timeout", metavar="DURATION", help="Give up waiting after so long; the execution goes on.")
@store_options
def wait(execution_id: str, timeout: str | None, dsn: str, *, as_json: bool) -> None:
    """Wait for the end of an execution and print its result; exits with 3 when it did not succeed."""
    key = parse_execution_key(execution_id)
    timeout_us = None if timeout is None else duration_us(timeout, field="--timeout")

    async def run(store: Store) -> ExecutionView:
        progress = Progress(clock := SystemClock(), to=sys.stderr)
        client = Client(store, clock)
        ended = asyncio.create_task(client.ended(key, timeout_us))
        try:
            while not (await asyncio.wait([ended], timeout=_LOOK_S))[0]:
                view = await use.find_execution(store, key)
                progress.show(f"{state_word(view.state)} {view.progress or ''}")
            return await ended
        finally:
            progress.end()
            await client.close()

    view = with_store(dsn, run)
    if view.state is not ExecutionState.SUCCEEDED:
        raise ExecutionFailed(f"execution {execution_id} ended {state_word(view.state)}: {first_line(view.error)}")
    if as_json:
        print_json(execution_document(view))
    elif view.result is not None:
        click.echo(view.result.decode(errors="replace"))


@executions.command()
@click.argument("execution_ids", nargs=-1, required=True)
@store_options
def cancel(execution_ids: tuple[str, ...], dsn: str, *, as_json: bool) -> None:
    """Ask for the end of executions: waiting ones at once, running ones when their executor hears of it."""
    keys = [parse_execution_key(text) for text in execution_ids]
    states = with_store(dsn, lambda store: use.cancel(store, keys))
    if as_json:
        print_json({key.text(): state_word(state) for key, state in zip(keys, states, strict=True)})
        return
    for key, state in zip(keys, states, strict=True):
        asked = "" if state.terminal else ", its end was asked for"
        click.echo(f"{key.text()}: {state_word(state)}{asked}")


@executions.command()
@click.argument("execution_ids", nargs=-1, required=True)
@store_options
def retry(execution_ids: tuple[str, ...], dsn: str, *, as_json: bool) -> None:
    """Run ended executions once more, each as a new one that names the old; make parked ones ready."""
    keys = [parse_execution_key(text) for text in execution_ids]

    async def run(store: Store) -> list[str]:
        ids = await store.take_ids(len(keys))
        return [
            (await use.retry(store, key, request_id=ids.first + place)).key.text() for place, key in enumerate(keys)
        ]

    fresh = with_store(dsn, run)
    if as_json:
        print_json(dict(zip((key.text() for key in keys), fresh, strict=True)))
        return
    for key, new in zip(keys, fresh, strict=True):
        click.echo(f"{key.text()}: ready again" if new == key.text() else f"{key.text()}: runs again as {new}")


def _read_states(states: Sequence[str]) -> frozenset[ExecutionState]:
    chosen: set[ExecutionState] = set()
    for word in states:
        chosen |= _GROUPS.get(word) or {ExecutionState[word.upper()]}
    return frozenset(chosen)


def _cells(row: ExecutionView, now_us: Instant) -> Sequence[str]:
    note = row.progress if row.state is ExecutionState.RUNNING else first_line(row.error)
    return (
        row.key.text(),
        row.handler,
        state_word(row.state),
        str(row.attempt),
        distance(row.due_us, now_us),
        _took(row.started_us, row.finished_us),
        note or "",
    )


def _print_execution(view: ExecutionView, now_us: Instant) -> None:
    payload = content(view.payload, view.content_type)
    result = None if view.result is None else content(view.result, view.result_type)
    print_facts(
        {
            "id": view.key.text(),
            "handler": view.handler,
            "namespace": view.namespace,
            "state": state_word(view.state),
            "cancel": "its end was asked for" if view.cancel_requested else None,
            "attempt": str(view.attempt),
            "origin": view.origin.name.lower(),
            "replay of": None if view.replay_of is None else view.replay_of.text(),
            "key": view.request_key,
            "fire time": moment(view.key.fire_us),
            "due": f"{moment(view.due_us)}  {distance(view.due_us, now_us)}",
            "started": None if view.started_us is None else moment(view.started_us),
            "finished": None if view.finished_us is None else moment(view.finished_us),
            "took": None if view.finished_us is None else _took(view.started_us, view.finished_us),
            "deadline": None if view.deadline_us is None else moment(view.deadline_us),
            "executor": view.executor_id,
            "labels": ", ".join(f"{name}={text}" for name, text in view.labels) or None,
            "arguments": None if payload is None else json.dumps(payload, ensure_ascii=False),
            "progress": view.progress,
            "result": None if view.result is None else json.dumps(result, ensure_ascii=False),
        }
    )
    if view.error:
        click.echo()
        for line in view.error.rstrip().splitlines():
            click.secho(printable(line), fg="red")


def _took(started_us: Instant | None, finished_us: Instant | None) -> str:
    return "-" if started_us is None or finished_us is None else span(finished_us - started_us)
