"""OpenMetrics text: a gauge for each figure, a summary for each distribution, closed by `# EOF`."""

from collections.abc import Iterator

from luciole.bench.exporting.subject import shown
from luciole.bench.result import Metric, Result
from luciole.limits import SECOND_US

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def openmetrics(result: Result) -> str:
    """Return a result as OpenMetrics 1.0 text: times in seconds, each figure as median, least and greatest."""
    labels = {
        "profile": result.profile,
        "backend": str(result.backend.get("name", "none")),
        "revision": str(result.product.get("revision", "unknown")),
        "fingerprint": str(result.environment.get("fingerprint", "unknown")),
    }
    lines = [line for metric in shown(result) for line in _family(metric, labels)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _family(metric: Metric, labels: dict[str, str]) -> Iterator[str]:
    name, factor = _named(metric)
    yield f"# TYPE {name} gauge"
    yield f"# HELP {name} {metric.name}, {metric.direction} is better, in {metric.unit}".replace("\n", " ")
    for statistic, value in (("median", metric.median), ("least", metric.low), ("greatest", metric.high)):
        yield f"{name}{_set({**labels, 'statistic': statistic})} {value * factor!r}"
    if metric.distribution is not None:
        whole = metric.distribution
        yield f"# TYPE {name}_distribution summary"
        for quantile, value in ((0.5, whole.p50), (0.95, whole.p95), (0.99, whole.p99), (1.0, whole.max)):
            yield f"{name}_distribution{_set({**labels, 'quantile': str(quantile)})} {value * factor!r}"
        yield f"{name}_distribution_count{_set(labels)} {whole.count}"


def _named(metric: Metric) -> tuple[str, float]:
    if metric.unit == "us":
        return f"luciole_bench_{metric.name.removesuffix('_us')}_seconds", 1 / SECOND_US
    return f"luciole_bench_{metric.name}", 1.0


def _set(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()) + "}"
