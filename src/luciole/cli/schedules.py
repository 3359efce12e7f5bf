"""`luciole schedules`."""

import json
from collections.abc import Sequence
from dataclasses import replace

import click

from luciole import limits
from luciole.cli.documents import execution_document, ledger_document, schedule_document
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
    span,
    state_word,
)
from luciole.cli.triggers import make_trigger, trigger_options, trigger_text
from luciole.errors import InvalidValue
from luciole.model.instant import Instant
from luciole.model.job import Misfire
from luciole.model.schedule import Policy, ScheduleState, ScheduleView
from luciole.service import schedules as use
from luciole.service.executions import ScheduleHistory, read_history
from luciole.store.reads import ScheduleFilter
from luciole.store.spi import Store

_STATES = [state.value for state in ScheduleState]


@click.group()
def schedules() -> None:
    """List, show, trigger, pause, resume, edit and delete schedules."""


@schedules.command("list")
@click.argument("prefix", default="")
@click.option("--namespace", help="Only of this namespace.")
@click.option("--owner", help="Only of this app.")
@click.option("--state", "states", multiple=True, type=click.Choice(_STATES), help="Only in this state; repeatable.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="So many at most.")
@store_options
def list_(
    prefix: str,
    namespace: str | None,
    owner: str | None,
    states: tuple[str, ...],
    limit: int,
    dsn: str,
    *,
    as_json: bool,
) -> None:
    """List schedules whose names start with PREFIX."""
    query = ScheduleFilter(namespace=namespace, owner=owner, name_prefix=prefix)
    if states:
        query = replace(query, states=frozenset(map(ScheduleState, states)))

    async def read(store: Store) -> tuple[Instant, list[ScheduleView], bool]:
        rows: list[ScheduleView] = []
        page: str | None = None
        while True:
            size = min(limits.PAGE_MAX, limit - len(rows))
            found = await use.list_schedules(store, replace(query, limit=size, page=page))
            rows += found.rows
            page = found.next
            if page is None or len(rows) >= limit:
                return await store.now_us(), rows, page is not None

    now_us, rows, more = with_store(dsn, read)
    columns = (
        Column(title="name", shrinks=True),
        Column(title="state"),
        Column(title="trigger", shrinks=True),
        Column(title="next"),
        Column(title="in"),
        Column(title="handler", shrinks=True),
        Column(title="owner", shrinks=True),
    )
    print_rows(
        rows,
        schedule_document,
        columns,
        lambda view: _cells(view, now_us),
        as_json=as_json,
        empty="No schedules yet: declare some with app.schedule(…) and run `luciole up APP`.",
    )
    if more and not as_json:
        click.secho(f"… and more: raise --limit above {limit}, or name a PREFIX", dim=True)


@schedules.command()
@click.argument("name")
@namespace_option
@click.option("--history", default=10, show_default=True, type=click.IntRange(1, 1_000), help="Latest outcomes shown.")
@store_options
def show(name: str, namespace: str, history: int, dsn: str, *, as_json: bool) -> None:
    """Show a schedule and what became of its latest fire times."""

    async def read(store: Store) -> tuple[Instant, ScheduleView, ScheduleHistory]:
        view = await use.find_schedule(store, namespace, name)
        return await store.now_us(), view, await read_history(store, view, limit=history)

    now_us, view, past = with_store(dsn, read)
    if as_json:
        document = schedule_document(view)
        document["executions"] = [execution_document(row) for row in past.executions]
        document["ledger"] = [ledger_document(row) for row in past.ledger]
        print_json(document)
        return
    print_schedule(view, now_us)
    if past.executions:
        click.echo()
        columns = (
            Column(title="execution"),
            Column(title="fire time"),
            Column(title="state"),
            Column(title="attempt", right=True),
            Column(title="took", right=True),
            Column(title="error", shrinks=True),
        )
        rows = [
            (
                row.key.text(),
                moment(row.key.fire_us),
                state_word(row.state),
                str(row.attempt),
                "-" if row.started_us is None or row.finished_us is None else span(row.finished_us - row.started_us),
                first_line(row.error),
            )
            for row in past.executions
        ]
        print_table(columns, rows, empty="")
    if past.ledger:
        click.echo()
        ledger_columns = (
            Column(title="did not run"),
            Column(title="until"),
            Column(title="fires", right=True),
            Column(title="reason"),
        )
        skipped = [(moment(row.first_us), moment(row.last_us), str(row.fires), row.reason.value) for row in past.ledger]
        print_table(ledger_columns, skipped, empty="")


@schedules.command()
@click.argument("name")
@namespace_option
@click.option("--args", "payload", metavar="JSON", help='Instead of its own arguments: {"region": "eu"}.')
@click.option("--key", help="The same key is the same execution.")
@store_options
def trigger(name: str, namespace: str, payload: str | None, key: str | None, dsn: str, *, as_json: bool) -> None:
    """Run a schedule's job now, beside its own fire times. Its overlap policy holds."""
    encoded = None if payload is None else read_arguments(payload)

    async def run(store: Store) -> str:
        segment = await store.take_ids(1)
        done = await use.trigger_by_hand(store, namespace, name, request_id=segment.first, payload=encoded, key=key)
        return done.key.text()

    execution_id = with_store(dsn, run)
    if as_json:
        print_json({"execution": execution_id})
    else:
        click.echo(f"{execution_id}  (see `luciole executions show {execution_id}`)")


@schedules.command()
@click.argument("names", nargs=-1, required=True)
@namespace_option
@click.option("--reason", default="", help="Why; shown with the schedule.")
@store_options
def pause(names: tuple[str, ...], namespace: str, reason: str, dsn: str, *, as_json: bool) -> None:
    """Stop schedules until they are resumed."""

    async def run(store: Store) -> list[ScheduleView]:
        return [await use.pause(store, namespace, name, reason=reason) for name in names]

    _print_changed(with_store(dsn, run), as_json=as_json)


@schedules.command()
@click.argument("names", nargs=-1, required=True)
@namespace_option
@store_options
def resume(names: tuple[str, ...], namespace: str, dsn: str, *, as_json: bool) -> None:
    """Let paused or parked schedules fire again, from now on."""

    async def run(store: Store) -> list[ScheduleView]:
        return [await use.resume(store, namespace, name) for name in names]

    _print_changed(with_store(dsn, run), as_json=as_json)


@schedules.command()
@click.argument("names", nargs=-1, required=True)
@namespace_option
@click.confirmation_option("--yes", prompt="They will never fire again. Delete them?")
@store_options
def delete(names: tuple[str, ...], namespace: str, dsn: str, *, as_json: bool) -> None:
    """Delete schedules. Their executions stay until retention prunes them."""

    async def run(store: Store) -> list[ScheduleView]:
        return [await use.delete(store, namespace, name) for name in names]

    _print_changed(with_store(dsn, run), as_json=as_json)


@schedules.command()
@click.argument("name")
@namespace_option
@trigger_options
@click.option("--misfire", type=click.Choice([choice.value for choice in Misfire]), help="What late fire times do.")
@click.option("--catch-up", type=click.IntRange(1), help="With --misfire catch_up: so many at most.")
@click.option("--overlap", help="allow, forbid, queue_one or replace.")
@store_options
def edit(
    name: str,
    namespace: str,
    misfire: str | None,
    catch_up: int | None,
    overlap: str | None,
    dsn: str,
    *,
    as_json: bool,
    **trigger_choices: str | None,
) -> None:
    """Give a schedule another trigger or policy, recomputed from now.

    An app that declares the schedule restores its own at its next start.
    """
    chosen = make_trigger(**trigger_choices)
    if chosen is None and misfire is None and overlap is None:
        raise InvalidValue("schedules edit: nothing to change; name --cron, --every, --at, --misfire or --overlap")

    async def run(store: Store) -> list[ScheduleView]:
        policy: Policy | None = None
        if misfire is not None or overlap is not None:
            old = (await use.find_schedule(store, namespace, name)).spec.policy
            policy = use.read_policy(
                misfire=misfire or old.misfire,
                misfire_after=old.misfire_after_us / limits.SECOND_US,
                catch_up=catch_up or (None if misfire else old.catch_up_limit or None),
                overlap=overlap or old.overlap,
            )
        return [await use.edit(store, namespace, name, trigger=chosen, policy=policy)]

    _print_changed(with_store(dsn, run), as_json=as_json)


def print_schedule(view: ScheduleView, now_us: Instant) -> None:
    """Print all that is stored of a schedule."""
    policy = view.spec.policy
    payload = view.spec.job.payload.decode(errors="replace")
    print_facts(
        {
            "name": view.spec.name,
            "namespace": view.spec.namespace,
            "owner": view.spec.owner or None,
            "state": view.state.value,
            "reason": view.reason,
            "handler": view.spec.job.handler,
            "arguments": payload or None,
            "trigger": trigger_text(view.spec.trigger),
            "next": None if view.due_us is None else f"{moment(view.fire_us)}  {distance(view.fire_us, now_us)}",
            "misfire": policy.misfire.value + (f" (at most {policy.catch_up_limit})" if policy.catch_up_limit else ""),
            "overlap": policy.overlap.value,
            "version": f"{view.version}, changed {distance(view.updated_us, now_us)}",
        }
    )


def read_arguments(text: str) -> bytes:
    """Return arguments given as a JSON object.

    Raises:
        InvalidValue: the text is no JSON object.
    """
    try:
        given = json.loads(text)
    except ValueError as problem:
        raise InvalidValue(f"--args: {problem}; write a JSON object such as '{{\"order_id\": 42}}'") from None
    if not isinstance(given, dict):
        raise InvalidValue("--args: write a JSON object with an argument under the name of each parameter")
    return json.dumps(given, separators=(",", ":"), ensure_ascii=False).encode()


def _cells(view: ScheduleView, now_us: Instant) -> Sequence[str]:
    fires = view.due_us is not None
    return (
        view.spec.name,
        view.state.value,
        trigger_text(view.spec.trigger),
        moment(view.fire_us) if fires else "-",
        distance(view.fire_us, now_us) if fires else "-",
        view.spec.job.handler,
        view.spec.owner,
    )


def _print_changed(views: Sequence[ScheduleView], *, as_json: bool) -> None:
    if as_json:
        print_json([schedule_document(view) for view in views])
        return
    for view in views:
        following = f", next {moment(view.fire_us)}" if view.due_us is not None else ""
        click.echo(f"{view.spec.name}: {view.state.value}{following}")
