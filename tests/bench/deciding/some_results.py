"""Results of any profile, made up: every metric of it with the values that a test wants."""

from collections.abc import Mapping, Sequence

from luciole.bench.percentiles import Distribution, merged
from luciole.bench.profiles import PROFILES
from luciole.bench.result import Check, Percentiles, Repeat, Result, metric, outcome
from luciole.bench.verdict import Verdict

PASSED = Check(name="doubles", source="store", expected="= 0", found=0, passed=True)


def lags(typical_us: int, count: int) -> Percentiles:
    """Return a distribution around a value: its p99 lies a third above."""
    spread = Distribution()
    for step in range(100):
        spread.add(typical_us * (200 + step) // 250, count // 100)
    return spread.percentiles()


def a_result(
    profile: str = "burst",
    values: Mapping[str, Sequence[float]] | None = None,
    *,
    distributions: Mapping[str, Sequence[Percentiles]] | None = None,
    fingerprint: str = "0123456789abcdef",
    requested: Mapping[str, object] | None = None,
    verdict: Verdict = Verdict.OK,
    started: str = "2026-01-01T00:00:00Z",
) -> Result:
    """Return a result that has these metrics alone; each has a value for each repeat."""
    chosen = PROFILES[profile]
    values, distributions = values or {}, distributions or {}
    count = max([1, *(len(one) for one in (*values.values(), *distributions.values()))])
    repeats = [
        Repeat(
            index=index,
            checks=[PASSED],
            figures={name: one[index] for name, one in values.items()},
            distributions={name: one[index] for name, one in distributions.items()},
        )
        for index in range(count)
    ]
    metrics = [metric(chosen.metric(name), list(one)) for name, one in values.items()]
    metrics += [
        metric(chosen.metric(name), [float(part.p99) for part in one], merged(one))
        for name, one in distributions.items()
    ]
    return Result(
        profile=profile,
        question=chosen.question,
        border=chosen.border,
        verdict=outcome(verdict, "made up"),
        started=started,
        duration_s=1.0,
        product={"version": "0.1.0", "revision": "ab" * 20, "dirty": False},
        command=["luciole", "bench", "run", profile],
        environment={"fingerprint": fingerprint, "cpu": "some", "cores": 2},
        backend={"name": "sqlite", "version": "3.45", "settings": {"synchronous": "2"}},
        requested={"jobs": 1_000, "size": "full", "repeats": count, **(requested or {})},
        actual={},
        metrics=metrics,
        repeats=repeats,
    )
