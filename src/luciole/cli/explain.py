"""`luciole explain`."""

from collections.abc import Sequence
from datetime import datetime

import click

from luciole.cli.documents import schedule_document
from luciole.cli.options import namespace_option, store_options, with_store
from luciole.cli.output import Column, distance, moment, print_json, print_table
from luciole.cli.schedules import print_schedule
from luciole.cli.triggers import make_trigger, read_time, trigger_options
from luciole.errors import InvalidValue
from luciole.model.instant import Instant, from_datetime, iso, to_datetime
from luciole.model.schedule import ScheduleView
from luciole.model.trigger import Fire, trigger_from_spec
from luciole.runtime.clock import SystemClock
from luciole.service.schedules import find_schedule
from luciole.store.spi import Store


@click.command()
@click.argument("name", required=False)
@namespace_option
@trigger_options
@click.option("-n", "count", default=5, show_default=True, type=click.IntRange(1, 1_000), help="So many fires.")
@click.option("--after", metavar="TIME", help="From an ISO time on; default now.")
@store_options
def explain(
    name: str | None,
    namespace: str,
    count: int,
    after: str | None,
    dsn: str,
    *,
    as_json: bool,
    **trigger_choices: str | None,
) -> None:
    """Say when a schedule fires next, and why then.

    Name a stored schedule; or an expression, which needs no store:

        luciole explain --cron "30 2 * * *" --tz Europe/Berlin
    """
    start = None if after is None else read_time(after)
    chosen = make_trigger(**trigger_choices)
    if (name is None) == (chosen is None):
        raise InvalidValue("explain: name a schedule, or an expression with --cron, --every or --at")
    if chosen is not None:
        now_us = SystemClock().now_us()
        fires = chosen.explain(start or to_datetime(now_us), count)
        _print(fires, now_us, as_json=as_json, view=None)
        return

    async def read(store: Store) -> tuple[Instant, ScheduleView]:
        return await store.now_us(), await find_schedule(store, namespace, name or "")

    now_us, view = with_store(dsn, read)
    _print(_fires_of(view, start or to_datetime(now_us), count), now_us, as_json=as_json, view=view)


def _fires_of(view: ScheduleView, after: datetime, count: int) -> list[Fire]:
    """Return the fires of a schedule: those that its cursor has not reached yet."""
    if view.due_us is None or view.fire_us is None:
        return []
    after_us = max(from_datetime(after, field="--after"), view.fire_us - 1)
    return trigger_from_spec(view.spec.trigger).explain(to_datetime(after_us), count, schedule_id=view.schedule_id)


def _print(fires: Sequence[Fire], now_us: Instant, *, as_json: bool, view: ScheduleView | None) -> None:
    if as_json:
        document = [
            {"fire": iso(fire.fire_us), "due": iso(fire.due_us), "local": fire.local, "reasons": list(fire.reasons)}
            for fire in fires
        ]
        print_json(document if view is None else {"schedule": schedule_document(view), "fires": document})
        return
    if view is not None:
        print_schedule(view, now_us)
        click.echo()
    columns = (
        Column(title="local"),
        Column(title="UTC"),
        Column(title="in"),
        Column(title="because", shrinks=True),
    )
    rows = [
        (fire.local, moment(fire.fire_us), distance(fire.due_us, now_us), "; ".join(fire.reasons)) for fire in fires
    ]
    state = "" if view is None else f": it is {view.state.value}"
    print_table(columns, rows, empty=f"It does not fire any more{state}.")
