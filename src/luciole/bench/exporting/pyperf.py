"""The JSON of pyperf: a suite whose benchmarks are timings in seconds or sizes in bytes."""

from typing import Any

import msgspec

from luciole.bench.exporting.subject import shown, subject
from luciole.bench.result import Metric, Result
from luciole.bench.verdict import Usage
from luciole.limits import SECOND_US

#: Unit of ours -> unit of pyperf, and the factor between them. It knows no rates.
_UNITS = {"us": ("second", 1 / SECOND_US), "bytes": ("byte", 1.0)}


def pyperf(result: Result) -> str:
    """Return the timings and sizes of a result; each repeat is a run with one value.

    Raises:
        Usage: it has neither.
    """
    benchmarks = [_benchmark(result, metric) for metric in shown(result) if _unit(metric) in _UNITS]
    benchmarks = [benchmark for benchmark in benchmarks if benchmark["runs"]]
    if not benchmarks:
        raise Usage(f"--as pyperf: {result.profile} has no timing and no size, which is all that pyperf holds")
    document = {"version": "1.0", "metadata": _metadata(result), "benchmarks": benchmarks}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode("utf-8") + "\n"


def _benchmark(result: Result, metric: Metric) -> dict[str, Any]:
    unit, factor = _UNITS[_unit(metric)]
    return {
        "metadata": {"name": f"{subject(result)} {metric.name}", "unit": unit, "loops": 1},
        "runs": [{"values": [value * factor]} for value in metric.values if value > 0],  # It takes no zero.
    }


def _unit(metric: Metric) -> str:
    return metric.unit.partition("/")[0]


def _metadata(result: Result) -> dict[str, Any]:
    machine = result.environment
    known = {
        "hostname": machine.get("fingerprint"),
        "platform": machine.get("kernel"),
        "cpu_model_name": machine.get("cpu"),
        "cpu_count": machine.get("cores"),
        "python_version": machine.get("python"),
        "description": result.question,
        "commit_id": result.product.get("revision"),
    }
    return {name: value for name, value in known.items() if value}
