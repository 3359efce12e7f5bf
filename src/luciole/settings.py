"""Settings: every knob of a node and an executor, typed, with its bounds and what it is for.

A value comes from the first that names it: an argument, the environment (`LUCIOLE_LEASE_TTL=5s`), the default.
`docs/settings.md` is made of this file.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, NamedTuple

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.duration import duration_us

ENV_PREFIX = "LUCIOLE_"


class Knob(NamedTuple):
    """What is known of one setting beside its value."""

    group: str
    doc: str
    kind: str  #: "text", "secret", "number", "duration", "flag"
    low: int = 0
    high: int = 0


def _knob(default: Any, knob: Knob) -> Any:  # noqa: ANN401 - as dataclasses.field
    return field(default=default, metadata={"knob": knob})


def _text(default: str | None, group: str, doc: str) -> Any:  # noqa: ANN401 - as dataclasses.field
    return _knob(default, Knob(group, doc, "text"))


def _secret(group: str, doc: str) -> Any:  # noqa: ANN401 - as dataclasses.field
    return _knob(None, Knob(group, doc, "secret"))


def _number(default: int, group: str, low: int, high: int, doc: str) -> Any:  # noqa: ANN401 - as dataclasses.field
    return _knob(default, Knob(group, doc, "number", low, high))


def _duration(default_us: int, group: str, low_us: int, high_us: int, doc: str) -> Any:  # noqa: ANN401 - same
    return _knob(default_us, Knob(group, doc, "duration", low_us, high_us))


_STORE, _PLAN, _LEASE, _GATE, _KEEP, _RUN = "Store", "Planning", "Leases", "Gateway", "Retention", "Executor"
_MS, _S, _MIN, _H, _DAY = limits.MS_US, limits.SECOND_US, limits.MINUTE_US, limits.HOUR_US, limits.DAY_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one process. Durations are microseconds here and text such as "500ms" outside."""

    dsn: str = _text(
        "luciole.db", _STORE, "Where the store is: a path or `sqlite:///path` (SQLite), or `postgresql://…`."
    )
    namespace: str = _text("default", _STORE, "The namespace of jobs and schedules that this process defines and runs.")
    wait_for_store_us: int = _duration(
        60 * _S, _STORE, 0, 1 * _H,
        "A process whose store is down when it starts waits so long for it; 0: it ends at once, with exit code 4.",
    )  # fmt: skip

    batch_size: int = _number(
        limits.PLAN_BATCH_MIN, _PLAN, 1, limits.PLAN_BATCH_MAX,
        "Executions that one plan transaction creates at least while so many are due; it grows while commits are fast.",
    )  # fmt: skip
    max_due_records_per_tick: int = _number(
        limits.DUE_MAX, _PLAN, 1, limits.DUE_MAX, "Due schedules that one read of the planner returns at most."
    )
    max_idle_wakeup_us: int = _duration(
        limits.IDLE_PAUSE_MAX_US, _PLAN, 10 * _MS, 1 * _H,
        "The longest that a loop sleeps: how late a lost wake-up is noticed.",
    )  # fmt: skip
    plan_ahead_us: int = _duration(
        0, _PLAN, 0, limits.PLAN_AHEAD_MAX_US,
        "Plan schedules that may overlap, and bursts of those that must not, so long before they are due.",
    )  # fmt: skip
    held_max: int = _number(
        limits.HELD_MAX, _PLAN, 1, 1_000_000,
        "Open executions that a node keeps in memory for one shard; the rest wait in the store.",
    )  # fmt: skip

    lease_ttl_us: int = _duration(
        3 * _S, _LEASE, 500 * _MS, 5 * _MIN, "A shard whose holder is silent for so long is taken over."
    )
    lease_renew_pause_us: int = _duration(1 * _S, _LEASE, 50 * _MS, 1 * _MIN, "How often leases are renewed.")
    lease_margin_us: int = _duration(
        500 * _MS, _LEASE, 0, 1 * _MIN, "So long before its lease is over a node stops trusting it."
    )
    heartbeat_pause_us: int = _duration(1 * _S, _LEASE, 50 * _MS, 1 * _MIN, "How often a node says that it is alive.")
    node_ttl_us: int = _duration(3 * _S, _LEASE, 500 * _MS, 5 * _MIN, "A node silent for so long counts as dead.")
    stuck_after_us: int = _duration(
        30 * _S, _LEASE, 1 * _S, 1 * _H,
        "A node whose loops make no progress for so long gives its place up.",
    )  # fmt: skip

    listen: str | None = _text(
        None, _GATE, 'Where the gateway listens for executors, "host:port"; beyond loopback only with TLS and a token.'
    )
    advertise: str | None = _text(None, _GATE, 'The "host:port" that executors reach this node by, when not `listen`.')
    token: str | None = _secret(_GATE, "The shared secret that executors show to nodes.")
    tls_cert: str | None = _text(None, _GATE, "PEM file with the certificate chain of the gateway.")
    tls_key: str | None = _text(None, _GATE, "PEM file with its private key.")
    tls_ca: str | None = _text(None, _GATE, "PEM file with the authorities that executors trust.")
    session_ttl_us: int = _duration(
        limits.SESSION_TTL_US, _GATE, 500 * _MS, 5 * _MIN,
        "Told nothing for so long, a node and an executor give their session up.",
    )  # fmt: skip
    reconnect_grace_us: int = _duration(
        limits.RECONNECT_GRACE_US, _GATE, 0, 5 * _MIN,
        "So long an executor may take to come back before its runs are given to others.",
    )  # fmt: skip
    unknown_handler_grace_us: int = _duration(
        limits.UNKNOWN_HANDLER_GRACE_US, _GATE, 0, 1 * _H,
        "Executions whose handler no executor has known for so long are parked.",
    )  # fmt: skip
    drain_grace_us: int = _duration(
        10 * _S, _GATE, 0, 1 * _H, "What running executions get to end when a process is told to stop."
    )

    retention_us: int = _duration(
        7 * _DAY, _KEEP, 1 * _MIN, 3_660 * _DAY, "Executions that ended longer ago than this are deleted."
    )

    nodes: str = _text("", _RUN, 'The nodes that an executor connects to first: "host:port", separated by commas.')
    slots: int = _number(100, _RUN, 1, limits.SLOTS_MAX, "Executions that an executor runs at once.")
    threads: int = _number(32, _RUN, 1, limits.THREADS_MAX, "Threads for handlers that are plain functions.")
    processes: int = _number(
        0, _RUN, 0, limits.PROCESSES_MAX, "Processes for CPU-bound handlers; 0: as many as there are processors."
    )
    labels: str = _text("", _RUN, 'What an executor offers, "name=value", separated by commas; jobs may ask for it.')

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(_key(one), getattr(self, one.name), _knob_of(one))
        self._check_leases()

    @property
    def local_pause_us(self) -> int:
        """The longest that a loop sleeps which waits for nothing outside its process, microseconds."""
        return max(limits.LOCAL_PAUSE_MAX_US, self.max_idle_wakeup_us)

    def _check_leases(self) -> None:
        if self.lease_renew_pause_us * 2 > self.lease_ttl_us - self.lease_margin_us:
            raise InvalidValue(
                "lease_renew_pause: at least two renewals must fit into lease_ttl - lease_margin; "
                "shorten it or lengthen lease_ttl"
            )
        if self.heartbeat_pause_us * 2 > self.node_ttl_us:
            raise InvalidValue("heartbeat_pause: at least two heartbeats must fit into node_ttl; shorten it")
        if self.session_ttl_us * (limits.SESSION_BEATS - 1) // limits.SESSION_BEATS < (
            self.lease_ttl_us + self.lease_margin_us
        ):
            raise InvalidValue(
                "session_ttl: three quarters of it must outlast lease_ttl + lease_margin, or executors end what they "
                "run for a node that died before its successor can tell them to go on; lengthen it"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidValue("tls_key: a certificate and its key come together; set tls_cert and tls_key")


def load_settings(environ: Mapping[str, str] | None = None, /, **arguments: object) -> Settings:
    """Return settings from arguments, the environment and the defaults, the first that names one wins.

    Args:
        environ: the environment; None: that of this process.
        arguments: by key (`lease_ttl="5s"`); None counts as not given.

    Raises:
        InvalidValue: a key is unknown, or a value is not of its kind or outside its bounds; the message names the key
            and where the value came from.
    """
    known = {_key(one): one for one in fields(Settings)}
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for name, text in environ.items():
        if name.startswith(ENV_PREFIX):
            key = name.removeprefix(ENV_PREFIX).lower()
            one = _find(known, key, name)
            values[one.name] = _read(name, text, _knob_of(one))
    for key, value in arguments.items():
        if value is not None:
            one = _find(known, key, key)
            values[one.name] = _read(key, value, _knob_of(one))
    return Settings(**values)


def settings_page() -> str:
    """Return the page that documents all settings, as Markdown."""
    lines = [
        "# Settings",
        "",
        "A value comes from the first that names it: an argument or option, the environment variable, the default.",
        "Durations are written as `500ms`, `5s`, `1h30m`; a plain number counts seconds.",
    ]
    group = ""
    for one in fields(Settings):
        knob = _knob_of(one)
        if knob.group != group:
            group = knob.group
            lines += [
                "",
                f"## {group}",
                "",
                "| key | environment | default | bounds | what it is for |",
                "|---|---|---|---|---|",
            ]
        key = _key(one)
        shown = _shown(one.default, knob)
        bounds = f"{_shown(knob.low, knob)} to {_shown(knob.high, knob)}" if knob.high else ""
        lines.append(f"| `{key}` | `{ENV_PREFIX}{key.upper()}` | {shown} | {bounds} | {knob.doc} |")
    return "\n".join(lines) + "\n"


def _key(one: "Field[Any]") -> str:
    return one.name.removesuffix("_us")


def _knob_of(one: "Field[Any]") -> Knob:
    knob: Knob = one.metadata["knob"]
    return knob


def _find(known: Mapping[str, "Field[Any]"], key: str, name: str) -> "Field[Any]":
    if key in known:
        return known[key]
    close = get_close_matches(key, known, n=1)
    raise InvalidValue(f"{name}: there is no such setting" + (f"; did you mean {close[0]}?" if close else ""))


def _read(name: str, value: object, knob: Knob) -> object:
    if knob.kind == "duration":
        return duration_us(_number_or_text(value), field=name)
    if knob.kind == "number":
        if isinstance(value, str) and value.strip().replace("_", "").isdecimal():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise InvalidValue(f"{name}: {value!r} is no whole number")
    if not isinstance(value, str):
        raise InvalidValue(f"{name}: a {type(value).__name__} is no text")
    return value


def _number_or_text(value: object) -> object:
    """Let a plain number in the environment count seconds, as it does in an argument."""
    if isinstance(value, str) and value.strip().replace(".", "", 1).isdecimal():
        return float(value)
    return value


def _check(key: str, value: object, knob: Knob) -> None:
    if knob.high and isinstance(value, int) and not knob.low <= value <= knob.high:
        raise InvalidValue(
            f"{key}: {_shown(value, knob)} is outside {_shown(knob.low, knob)} to {_shown(knob.high, knob)}"
        )


def _shown(value: object, knob: Knob) -> str:
    if value is None or value == "":
        return "none"
    if knob.kind != "duration" or not isinstance(value, int):
        return f"`{value}`" if knob.kind == "text" else f"{value:,}" if isinstance(value, int) else str(value)
    for unit, size_us in (("d", _DAY), ("h", _H), ("m", _MIN), ("s", _S), ("ms", _MS)):
        if value and value % size_us == 0:
            return f"{value // size_us}{unit}"
    return f"{value}us" if value else "0s"
