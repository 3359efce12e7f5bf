"""What exported figures are called."""

from luciole.bench.result import Metric, Result


def subject(result: Result) -> str:
    """Return the name of what was measured: profile, backend, and what tells its runs apart."""
    parts = [result.profile, str(result.backend.get("name", "none"))]
    parts += [str(result.requested[name]) for name in ("topology", "path", "phase") if name in result.requested]
    return "/".join(part for part in parts if part != "none")


def shown(result: Result) -> list[Metric]:
    """Return the figures that an export has: those that say which way is better."""
    return [metric for metric in result.metrics if metric.direction != "none"]
