"""What a run leaves behind: one document, `result.json`, written on failure too.

Times are microseconds and carry `_us`, seconds carry `_s`; instants are RFC 3339 text in UTC. A change that an
older reader can't understand raises `SCHEMA`.
"""

from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec

from luciole.bench.attribution.document import Attribution, Flame, Series, Trace
from luciole.bench.verdict import NotReadable, Verdict

SCHEMA = 1
KIND = "luciole.bench.result"
FILE_NAME = "result.json"

Direction = Literal["higher", "lower", "zero", "none"]


class MetricSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a figure is called, its unit, and which way is better."""

    name: str
    unit: str
    direction: Direction  #: "zero": anything else is a fault; "none": it describes, it judges nothing
    text: str  #: what it measures, with its border
    #: A throughput names the figure that is its ceiling, and the one that is its share of it.
    ceiling: str = ""
    share: str = ""


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution: its usual points and, whole, the HdrHistogram (V2, compressed, base 64)."""

    count: int
    p50: int
    p95: int
    p99: int
    max: int
    hdr_v2: str


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: a value for each repeat, in their order."""

    name: str
    unit: str
    direction: Direction
    values: list[float]
    median: float
    low: float
    high: float
    #: Of all repeats merged, for distributions.
    distribution: Percentiles | None = None


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a repeat, by the coordinator's clock."""

    name: str
    begun_s: float  #: since the repeat began
    duration_s: float


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question about correctness, asked of the store after the window, or of what the processes report."""

    name: str
    source: Literal["store", "report"]
    expected: str  #: such as "= 50000" or "> 0"
    found: int
    passed: bool


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """What the server alone does with the same rows."""

    name: str
    rate: float  #: jobs a second, the best
    batch: int
    connections: int
    tried: list[dict[str, float]]  #: each setting with its rate


class Repeat(msgspec.Struct, kw_only=True):
    """One repeat, measured by a process of its own."""

    index: int
    phases: list[Phase] = []
    figures: dict[str, float] = {}
    distributions: dict[str, Percentiles] = {}
    #: Exclusive stage times of the window in microseconds; with `unexplained` they add up to its wall time.
    stages_us: dict[str, int] = {}
    attribution: list[Attribution] = []  #: one a window
    series: list[Series] = []
    traces: list[Trace] = []
    flames: list[Flame] = []
    database: dict[str, dict[str, float]] = {}  #: what counters of the server grew by, by their view
    checks: list[Check] = []
    ceiling: Ceiling | None = None
    actual: dict[str, Any] = {}  #: parameters as read back from the running parts
    invalid: list[str] = []  #: why this repeat can't be trusted
    objective: list[str] = []  #: the clauses of the profile's objective that it failed
    notes: list[str] = []

    def message(self) -> dict[str, Any]:
        """Return it as a process tells it."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        return told


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, with its exit code and its reason."""

    word: str
    code: int
    reason: str


class Result(msgspec.Struct, kw_only=True):
    """The whole document."""

    kind: str = KIND
    schema: int = SCHEMA
    profile: str
    question: str
    border: str
    verdict: Outcome
    started: str
    duration_s: float
    author: str | None = None
    product: dict[str, Any]
    command: list[str]  #: what repeats the run, without passwords
    environment: dict[str, Any]
    backend: dict[str, Any]
    requested: dict[str, Any]
    actual: dict[str, Any] = {}
    metrics: list[Metric] = []
    ceiling: Ceiling | None = None
    ceiling_share: float | None = None
    limits_of_inference: list[str] = []
    repeats: list[Repeat] = []
    flames: list[Flame] = []  #: of repeats that were profiled, and count for nothing else


def outcome(verdict: Verdict, reason: str) -> Outcome:
    """Return a verdict as results hold it."""
    return Outcome(word=verdict.word, code=int(verdict), reason=reason)


def metric(spec: MetricSpec, values: list[float], distribution: Percentiles | None = None) -> Metric:
    """Return a figure over all repeats; the median, the least and the greatest stand beside the values."""
    return Metric(
        name=spec.name,
        unit=spec.unit,
        direction=spec.direction,
        values=values,
        median=median(values),
        low=min(values),
        high=max(values),
        distribution=distribution,
    )


def write_result(result: Result, folder: Path) -> Path:
    """Write `result.json` into a folder, whole or not at all; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE_NAME
    draft = path.with_suffix(".part")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    draft.replace(path)
    return path


def read_result(path: Path) -> Result:
    """Read a result: a file, or the folder that holds `result.json`.

    Raises:
        NotReadable: there is none, it is half written, or of another version.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        text = file.read_bytes()
    except OSError as error:
        raise NotReadable(f"{file}: {error.strerror or error}") from None
    try:
        head = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise NotReadable(f"{file}: no whole JSON document ({error}); was its run interrupted?") from None
    if not isinstance(head, dict) or head.get("kind") != KIND:
        raise NotReadable(f"{file}: this is no result of the bench")
    if head.get("schema") != SCHEMA:
        raise NotReadable(f"{file}: its schema is {head.get('schema')!r}, this version reads {SCHEMA}")
    try:
        return msgspec.convert(head, Result)
    except msgspec.ValidationError as error:
        raise NotReadable(f"{file}: {error}") from None
