"""`luciole migrate`."""

import asyncio

import click

from luciole import limits
from luciole.cli.options import dsn_option, refuse_absent
from luciole.cli.run import hide_passwords
from luciole.store.reads import Repair


@click.command()
@click.option(
    "--shards",
    type=click.IntRange(1, limits.SHARDS_MAX),
    help=f"Of a new store, for ever; default {limits.SHARDS_DEFAULT}. A multiple of the nodes it may have one day.",
)
@click.option(
    "--repair", is_flag=True, help="Restore rows of the store's own that a partial restore left out; nothing is lost."
)
@dsn_option
def migrate(shards: int | None, dsn: str, *, repair: bool) -> None:
    """Bring the store's schema up to date. Safe to repeat, and while others do the same."""
    if repair:
        refuse_absent(dsn)
    steps, repairs = asyncio.run(_migrate(dsn, shards, repair=repair))
    done = f"{steps} steps ran" if steps != 1 else "1 step ran"
    click.echo(f"{hide_passwords(dsn)}: {done if steps else 'already up to date'}")
    for found in repairs:
        click.echo(f"{found.subject}: {found.text}")
    if repair and not repairs:
        click.echo("nothing to repair: no row of the store's own is missing")


async def _migrate(dsn: str, shards: int | None, *, repair: bool) -> tuple[int, tuple[Repair, ...]]:
    from luciole.wiring import make_store  # noqa: PLC0415 - `--help` needs no store

    store = make_store(dsn)
    try:
        steps = await store.migrate(shards=shards)
        return steps, await store.repair() if repair else ()
    finally:
        await store.close()
