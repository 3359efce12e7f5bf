"""`luciole nodes`."""

from collections.abc import Iterator
from typing import Any

import click

from luciole.cli.documents import cluster_document, node_document
from luciole.cli.options import node_ttl_us, store_options, with_store
from luciole.cli.output import Column, distance, print_facts, print_json, print_table, span
from luciole.model.instant import Instant
from luciole.service.cluster import ClusterView, NodeView, view_cluster

_COLUMNS = (
    Column(title="node"),
    Column(title="host", shrinks=True),
    Column(title="pid", right=True),
    Column(title="address"),
    Column(title="shards", right=True),
    Column(title="up", right=True),
    Column(title="seen"),
    Column(title="version"),
)


_DURATION_COLUMNS = (
    Column(title="duration"),
    Column(title="count", right=True),
    Column(title="p50", right=True),
    Column(title="p99", right=True),
    Column(title="max", right=True),
)


@click.command()
@click.option("--gauges", is_flag=True, help="Show what each node measures of itself, too.")
@store_options
def nodes(gauges: bool, dsn: str, *, as_json: bool) -> None:  # noqa: FBT001 - an option is passed by its name
    """Show who is alive, who holds what, and how much is due."""
    view = with_store(dsn, lambda store: view_cluster(store, node_ttl_us=node_ttl_us()))
    if as_json:
        print_json(cluster_document(view))
        return
    empty = "No node is alive: start one with `luciole up APP` or `luciole node`."
    print_table(_COLUMNS, [_cells(node, view.now_us) for node in view.nodes], empty=empty)
    click.echo()
    print_facts(_facts(view))
    if gauges:
        for node in view.nodes:
            click.echo()
            click.secho(node.node.node_id, bold=True)
            telemetry = node_document(node)["telemetry"]
            durations = dict(_durations(telemetry.pop("durations", {})))
            print_facts(dict(_flat(telemetry)))
            click.echo()
            print_table(_DURATION_COLUMNS, [(name, *cells) for name, cells in durations.items()], empty="")


def _cells(view: NodeView, now_us: Instant) -> tuple[str, ...]:
    node = view.node
    return (
        node.node_id,
        node.host,
        str(node.pid),
        node.address or "-",
        str(view.shards),
        span(now_us - node.started_us),
        distance(node.seen_us, now_us),
        node.version,
    )


def _facts(view: ClusterView) -> dict[str, str]:
    backlog = view.backlog
    return {
        "shards": f"{view.shards} ({view.shards_free} held by nobody)",
        "due schedules": _with_age(backlog.due_schedules, backlog.oldest_due_us, view.now_us),
        "open executions": str(backlog.open_entries),
        "ready and due": _with_age(backlog.ready_due, backlog.oldest_ready_us, view.now_us),
        "parked": str(backlog.parked),
    }


def _with_age(count: int, oldest_us: Instant | None, now_us: Instant) -> str:
    return str(count) if oldest_us is None else f"{count}, the oldest due {distance(oldest_us, now_us)}"


def _durations(document: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each measured duration with its count and percentiles."""
    for name, value in document.items():
        if "p50_us" in value:
            spans = (span(value[key]) for key in ("p50_us", "p99_us", "max_us"))
            yield f"{prefix}{name}", (str(value["count"]), *spans)
        else:
            yield from _durations(value, f"{prefix}{name}.")


def _flat(document: Any, prefix: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    if not isinstance(document, dict):
        yield prefix, str(document)
        return
    for name, value in document.items():
        yield from _flat(value, f"{prefix}.{name}" if prefix else name)
