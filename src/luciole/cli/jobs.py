"""`luciole jobs`."""

import click

from luciole.cli.documents import job_document
from luciole.cli.options import store_options, with_store
from luciole.cli.output import Column, print_rows
from luciole.service.jobs import list_jobs
from luciole.store.reads import JobView

_COLUMNS = (
    Column(title="handler", shrinks=True),
    Column(title="namespace"),
    Column(title="versions", right=True),
    Column(title="id", right=True),
)


@click.group()
def jobs() -> None:
    """List jobs."""


@jobs.command("list")
@click.option("--namespace", help="Only of this namespace.")
@store_options
def list_(namespace: str | None, dsn: str, *, as_json: bool) -> None:
    """List the latest version of each job."""
    found = with_store(dsn, lambda store: list_jobs(store, namespace=namespace))
    empty = "No jobs yet: `luciole up APP` brings an app's."
    print_rows(found, job_document, _COLUMNS, _cells, as_json=as_json, empty=empty)


def _cells(job: JobView) -> tuple[str, ...]:
    return job.handler, job.namespace, str(job.versions), str(job.job_id)
