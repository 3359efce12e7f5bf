"""`luciole migrate`."""

import asyncio

import click

from luciole import limits
from luciole.cli.options import dsn_option
from luciole.cli.run import hide_passwords


@click.command()
@click.option(
    "--shards",
    type=click.IntRange(1, limits.SHARDS_MAX),
    help=f"Of a new store, for ever; default {limits.SHARDS_DEFAULT}. A multiple of the nodes it may have one day.",
)
@dsn_option
def migrate(shards: int | None, dsn: str) -> None:
    """Bring the store's schema up to date. Safe to repeat, and while others do the same."""
    steps = asyncio.run(_migrate(dsn, shards))
    done = f"{steps} steps ran" if steps != 1 else "1 step ran"
    click.echo(f"{hide_passwords(dsn)}: {done if steps else 'already up to date'}")


async def _migrate(dsn: str, shards: int | None) -> int:
    from luciole.wiring import make_store  # noqa: PLC0415 - `--help` needs no store

    store = make_store(dsn)
    try:
        return await store.migrate(shards=shards)
    finally:
        await store.close()
