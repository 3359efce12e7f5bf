"""`luciole jobs`."""

import click

from luciole.cli.documents import job_document
from luciole.cli.options import namespace_option, store_options, with_store
from luciole.cli.output import Column, print_json, print_rows
from luciole.cli.schedules import read_arguments
from luciole.cli.triggers import read_time
from luciole.model.execution import Enqueued
from luciole.service.jobs import find_job, list_jobs
from luciole.service.requests import RequestForm, RequestOptions, read_request_options
from luciole.store.reads import JobView
from luciole.store.spi import Store

_COLUMNS = (
    Column(title="handler", shrinks=True),
    Column(title="namespace"),
    Column(title="versions", right=True),
    Column(title="id", right=True),
)


@click.group()
def jobs() -> None:
    """List jobs, and run one."""


@jobs.command("list")
@click.option("--namespace", help="Only of this namespace.")
@store_options
def list_(namespace: str | None, dsn: str, *, as_json: bool) -> None:
    """List the latest version of each job."""
    found = with_store(dsn, lambda store: list_jobs(store, namespace=namespace))
    empty = "No jobs yet: `luciole up APP` brings an app's."
    print_rows(found, job_document, _COLUMNS, _cells, as_json=as_json, empty=empty)


@jobs.command()
@click.argument("handler")
@namespace_option
@click.option("--args", "payload", metavar="JSON", default="{}", help='Its arguments: {"order_id": 42}.')
@click.option("--delay", metavar="DURATION", help="Not before so much time from now.")
@click.option("--at", metavar="TIME", help="Not before an ISO time with its offset.")
@click.option("--priority", type=int, help="0 to 9, the highest first; default: the job's.")
@click.option("--key", help="The same key is the same execution.")
@store_options
def enqueue(  # noqa: PLR0913 - one parameter for each option
    handler: str,
    namespace: str,
    payload: str,
    delay: str | None,
    at: str | None,
    priority: int | None,
    key: str | None,
    dsn: str,
    *,
    as_json: bool,
) -> None:
    """Run HANDLER once."""
    encoded = read_arguments(payload)
    given = {"delay": delay, "at": None if at is None else read_time(at), "priority": priority, "key": key}
    options = RequestOptions(**{name: value for name, value in given.items() if value is not None})  # type: ignore[typeddict-item]
    choices = read_request_options(handler, options)

    async def run(store: Store) -> Enqueued:
        version = await find_job(store, namespace, handler)
        segment = await store.take_ids(1)
        form = RequestForm(version.spec, version.job_id, shards=store.shards, choices=choices)
        (done,) = await store.enqueue([form.request(encoded, segment.first)])
        return done

    done = with_store(dsn, run)
    if as_json:
        print_json({"execution": done.key.text(), "created": done.created})
    else:
        click.echo(f"{done.key.text()}{'' if done.created else '  (its key existed)'}")


def _cells(job: JobView) -> tuple[str, ...]:
    return job.handler, job.namespace, str(job.versions), str(job.job_id)
