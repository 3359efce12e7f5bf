"""`luciole doctor`."""

from dataclasses import asdict

import click

from luciole.cli.options import node_ttl_us, store_options, with_store
from luciole.cli.output import Column, print_json, print_table
from luciole.cli.run import hide_passwords
from luciole.errors import LucioleError
from luciole.runtime.clock import SystemClock
from luciole.service.cluster import Finding, Level, examine
from luciole.store.spi import Store

_COLUMNS = (Column(title=""), Column(title="what"), Column(title="found"))  # Advice is never cut off.


@click.command()
@store_options
@click.pass_context
def doctor(ctx: click.Context, dsn: str, *, as_json: bool) -> None:
    """Look for what is wrong, and say what to do about it.

    Exits with 1 when something is, so that it can stand in a health check.
    """
    host = SystemClock()

    async def look(store: Store) -> tuple[Finding, ...]:
        return await examine(store, host_now_us=host.now_us(), node_ttl_us=node_ttl_us())

    try:
        findings = with_store(dsn, look)
    except LucioleError as problem:
        findings = (Finding(level=Level.BAD, subject="store", text=hide_passwords(f"{problem} ({problem.code})")),)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [(finding.level.value, finding.subject, finding.text) for finding in findings]
        print_table(_COLUMNS, rows, empty="")
    ctx.exit(int(any(finding.level is not Level.OK for finding in findings)))
