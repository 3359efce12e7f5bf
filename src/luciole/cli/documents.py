"""Views as JSON documents: the field names that programs may rely on."""

import base64
import json
from typing import Any

from luciole.model.execution import AttemptView, ExecutionView
from luciole.model.ids import ExecutionKey
from luciole.model.instant import Instant, iso
from luciole.model.schedule import Policy, ScheduleView
from luciole.service.cluster import ClusterView, NodeView
from luciole.store.reads import Backlog, JobView, LedgerView


def schedule_document(view: ScheduleView) -> dict[str, Any]:
    """Return a schedule."""
    return {
        "name": view.spec.name,
        "namespace": view.spec.namespace,
        "owner": view.spec.owner,
        "id": view.schedule_id,
        "shard": view.shard,
        "state": view.state.value,
        "reason": view.reason,
        "handler": view.spec.job.handler,
        "payload": content(view.spec.job.payload, view.spec.job.content_type),
        "trigger": json.loads(view.spec.trigger),
        "policy": policy_document(view.spec.policy),
        "next": _iso(view.fire_us),
        "due": _iso(view.due_us),
        "version": view.version,
        "created": iso(view.created_us),
        "updated": iso(view.updated_us),
    }


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return how a schedule treats late and overlapping fire times."""
    return {
        "misfire": policy.misfire.value,
        "misfire_after_us": policy.misfire_after_us,
        "catch_up": policy.catch_up_limit or None,
        "overlap": policy.overlap.value,
    }


def execution_document(view: ExecutionView) -> dict[str, Any]:
    """Return an execution; attempts only when they were read."""
    document = {
        "id": view.key.text(),
        "namespace": view.namespace,
        "handler": view.handler,
        "state": view.state.name.lower(),
        "attempt": view.attempt,
        "origin": view.origin.name.lower(),
        "fire": iso(view.key.fire_us),
        "due": iso(view.due_us),
        "created": iso(view.created_us),
        "started": _iso(view.started_us),
        "finished": _iso(view.finished_us),
        "priority": view.priority,
        "labels": dict(view.labels),
        "key": view.request_key,
        "executor": view.executor_id,
        "payload": content(view.payload, view.content_type),
        "result": None if view.result is None else content(view.result, view.result_type),
        "error": view.error,
        "progress": view.progress,
        "deadline": _iso(view.deadline_us),
        "cancel_requested": view.cancel_requested,
        "replay_of": _id(view.replay_of),
        "parent": _id(view.parent),
    }
    if view.attempts:
        document["attempts"] = [attempt_document(attempt) for attempt in view.attempts]
    return document


def attempt_document(attempt: AttemptView) -> dict[str, Any]:
    """Return an attempt that did not simply succeed."""
    return {
        "attempt": attempt.attempt,
        "outcome": attempt.outcome,
        "error": attempt.error,
        "executor": attempt.executor_id,
        "started": _iso(attempt.started_us),
        "finished": iso(attempt.finished_us),
    }


def ledger_document(row: LedgerView) -> dict[str, Any]:
    """Return fire times that did not run."""
    return {"first": iso(row.first_us), "last": iso(row.last_us), "fires": row.fires, "reason": row.reason.value}


def job_document(job: JobView) -> dict[str, Any]:
    """Return the latest version of a job."""
    return {
        "handler": job.handler,
        "namespace": job.namespace,
        "id": job.job_id,
        "versions": job.versions,
        "options": json.loads(job.options),
    }


def cluster_document(view: ClusterView) -> dict[str, Any]:
    """Return the cluster."""
    return {
        "now": iso(view.now_us),
        "shards": view.shards,
        "shards_free": view.shards_free,
        "nodes": [node_document(node) for node in view.nodes],
        "backlog": backlog_document(view.backlog),
    }


def node_document(view: NodeView) -> dict[str, Any]:
    """Return a live node with its gauges."""
    node = view.node
    return {
        "id": node.node_id,
        "host": node.host,
        "pid": node.pid,
        "address": node.address,
        "version": node.version,
        "tzdata": node.tzdata,
        "started": iso(node.started_us),
        "seen": iso(node.seen_us),
        "shards": view.shards,
        "telemetry": json.loads(node.telemetry),
    }


def backlog_document(backlog: Backlog) -> dict[str, Any]:
    """Return how much is due and open."""
    return {
        "due_schedules": backlog.due_schedules,
        "oldest_due": _iso(backlog.oldest_due_us),
        "open": backlog.open_entries,
        "ready": backlog.ready_due,
        "oldest_ready": _iso(backlog.oldest_ready_us),
        "parked": backlog.parked,
    }


def content(data: bytes, content_type: str | None) -> Any:  # noqa: ANN401 - any JSON value
    """Return opaque bytes as what they are: JSON, else text, else base64 under its own name."""
    if not data:
        return None
    if content_type == "application/json":
        try:
            return json.loads(data)
        except ValueError:
            return {"invalid_json_base64": base64.b64encode(data).decode()}
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _iso(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)


def _id(key: ExecutionKey | None) -> str | None:
    return None if key is None else key.text()
