"""The faults, and which layer must see each."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from luciole.bench.deciding.comparing import Comparison, Found
from luciole.bench.deciding.sequential import LOOKS
from luciole.bench.faults import SLOW_STEP, Fault
from luciole.bench.result import Metric, Percentiles, Result
from luciole.bench.selftest.laboratory import BURST, MICRO, SERVER_BURST, Laboratory, Told, correct
from luciole.bench.selftest.seen import Case, Seen
from luciole.bench.verdict import Verdict

#: What a file is doctored by.
_DOCTORED = 1.2


def _wrong(fault: Fault) -> Callable[[Laboratory], Seen]:
    """The checks must fail: exit code 3."""

    def plant(lab: Laboratory) -> Seen:
        told = lab.run("burst", BURST, fault)
        failed = (
            [check.name for repeat in told.result.repeats for check in repeat.checks if not check.passed]
            if (told.result)
            else []
        )
        return Seen(caught=told.code == Verdict.INCORRECT and bool(failed), text=_ended(told, ", ".join(failed[:3])))

    return plant


def _worthless(fault: Fault, words: str) -> Callable[[Laboratory], Seen]:
    """The run must be thrown away, and for this reason: exit code 6."""

    def plant(lab: Laboratory) -> Seen:
        told = lab.run("burst", BURST, fault)
        caught = told.code == Verdict.INVALID and words in told.words
        return Seen(caught=caught, text=_ended(told, told.words.partition("INVALID ")[2]))

    return plant


def _slow_step(lab: Laboratory) -> Seen:
    return _compared(lab, lab.run("micro", MICRO), lab.run("micro", MICRO, "slow-step"), SLOW_STEP)


def _slow_batch(lab: Laboratory) -> Seen:
    return _compared(lab, lab.run("burst", BURST), lab.run("burst", BURST, "slow-batch"), "drain_us")


def _slow_batch_ab(lab: Laboratory) -> Seen:
    document = lab.ab("slow-batch", pairs=LOOKS[-1][0])  # Where it is quiet the first look is enough.
    worse = [figure.name for figure in document.figures if figure.call == "regressed"]
    caught = document.verdict.code == Verdict.REGRESSED and "drain_us" in worse
    return Seen(caught=caught, text=f"{document.verdict.word} after {document.slices} slices: {', '.join(worse[:3])}")


def _counted(fault: Fault, figure: str) -> Callable[[Laboratory], Seen]:
    """The server's counters must show it, whatever the time says."""

    def plant(lab: Laboratory) -> Seen:
        missing = lab.has_server()
        if missing:
            return Seen(caught=None, text=missing)
        return _compared(lab, lab.run("burst", SERVER_BURST), lab.run("burst", SERVER_BURST, fault), figure)

    return plant


def _doctored(lab: Laboratory) -> Seen:
    def doctor(result: Result) -> None:
        result.metrics = [
            _scaled(metric) if metric.name in {"drain_rate", "fire_lag"} else metric for metric in result.metrics
        ]
        for repeat in result.repeats:
            repeat.distributions = {
                name: _higher(one) if name == "fire_lag" else one for name, one in repeat.distributions.items()
            }

    return _edited(
        lab,
        doctor,
        Verdict.REGRESSED,
        lambda comparison: (
            _found(comparison, "drain_rate") is Found.IMPROVED and _found(comparison, "fire_lag p99") is Found.REGRESSED
        ),
    )


def _removed(lab: Laboratory) -> Seen:
    def remove(result: Result) -> None:
        result.metrics = [metric for metric in result.metrics if metric.name != "drain_rate"]

    return _edited(
        lab, remove, Verdict.NOT_COMPARABLE, lambda comparison: _found(comparison, "drain_rate") is Found.MISSING
    )


def _unit(lab: Laboratory) -> Seen:
    def change(result: Result) -> None:
        result.metrics = [
            replace(metric, unit="jobs/min") if metric.name == "drain_rate" else metric for metric in result.metrics
        ]

    return _edited(
        lab, change, Verdict.NOT_COMPARABLE, lambda comparison: _found(comparison, "drain_rate") is Found.UNIT_CHANGED
    )


def _identical(lab: Laboratory) -> Seen:
    document = lab.ab(None, pairs=lab.pairs)
    green = {Verdict.OK, Verdict.INCONCLUSIVE}
    text = f"{document.verdict.word} after {document.slices} slices"
    return Seen(caught=document.verdict.code in green, text=text)


CASES: tuple[Case, ...] = (
    Case(fault="a dropped job", layer="checks", expected="incorrect (3)", plant=_wrong("dropped-job")),
    Case(fault="a doubled dispatch", layer="checks", expected="incorrect (3)", plant=_wrong("doubled-dispatch")),
    Case(fault="an unmoved cursor", layer="checks", expected="incorrect (3)", plant=_wrong("unmoved-cursor")),
    Case(
        fault="an accepted stale fence", layer="checks", expected="incorrect (3)", plant=_wrong("stale-fence-accepted")
    ),
    Case(
        fault="a starved generator",
        layer="run",
        expected="invalid (6)",
        plant=_worthless("starved-generator", "opened"),
    ),
    Case(
        fault="a lost sampler",
        layer="run",
        expected="invalid (6)",
        plant=_worthless("lost-sampler", "the sampler of parts was lost"),
    ),
    Case(fault="10 ms in a micro step", layer="micro", expected=f"{SLOW_STEP} regressed (1)", plant=_slow_step),
    Case(fault="10 ms a plan batch", layer="compare", expected="drain_us regressed (1)", plant=_slow_batch),
    Case(
        fault="one more statement a job",
        layer="compare, counts",
        expected="statements_per_job regressed (1)",
        plant=_counted("statement-per-job", "statements_per_job"),
    ),
    Case(
        fault="one commit a job",
        layer="compare, counts",
        expected="commits_per_job regressed (1)",
        plant=_counted("commit-per-job", "commits_per_job"),
    ),
    Case(
        fault="throughput and p99 both up 20 %",
        layer="compare",
        expected="improved and regressed (1)",
        plant=_doctored,
    ),
    Case(fault="a metric removed", layer="compare", expected="not-comparable (4)", plant=_removed),
    Case(fault="a unit changed", layer="compare", expected="not-comparable (4)", plant=_unit),
    Case(fault="10 ms a plan batch", layer="ab", expected="drain_us regressed (1)", plant=_slow_batch_ab),
    Case(fault="none: identical code", layer="ab", expected="never regressed", plant=_identical),
)


def _compared(lab: Laboratory, sound: Told, faulty: Told, figure: str) -> Seen:
    """Compare a run with a fault to one without: one figure must have become worse."""
    if not correct(sound) or not correct(faulty):
        return Seen(caught=False, text="; ".join(one.words for one in (sound, faulty) if not correct(one)))
    assert sound.result
    assert faulty.result
    comparison = lab.compare(sound.result, faulty.result)
    row = next((row for row in comparison.rows if row.name == figure), None)
    caught = row is not None and row.found is Found.REGRESSED and comparison.verdict is Verdict.REGRESSED
    change = f"{row.name} {row.old:.4g} -> {row.new:.4g}" if row else f"{figure} is not there"
    return Seen(caught=caught, text=f"{comparison.verdict.word}: {change}")


def _edited(
    lab: Laboratory, edit: Callable[[Result], None], verdict: Verdict, right: Callable[[Comparison], bool]
) -> Seen:
    """Compare a result with an edited copy of itself."""
    sound = lab.run("burst", BURST)
    if not correct(sound):
        return Seen(caught=False, text=sound.words)
    copy = msgspec.convert(msgspec.to_builtins(sound.result), Result)
    edit(copy)
    assert sound.result
    comparison = lab.compare(sound.result, copy)
    caught = comparison.verdict is verdict and right(comparison)
    return Seen(caught=caught, text=f"{comparison.verdict.word}: {comparison.reason.partition(';')[0]}")


def _found(comparison: Comparison, name: str) -> Found | None:
    return next((row.found for row in comparison.rows if row.name == name), None)


def _scaled(metric: Metric) -> Metric:
    values = [value * _DOCTORED for value in metric.values]
    return replace(metric, values=values, median=metric.median * _DOCTORED)


def _higher(one: Percentiles) -> Percentiles:
    return replace(one, p50=round(one.p50 * _DOCTORED), p95=round(one.p95 * _DOCTORED), p99=round(one.p99 * _DOCTORED))


def _ended(told: Told, text: str) -> str:
    return f"code {told.code}: {text}" if text else f"code {told.code}: {told.words}"
