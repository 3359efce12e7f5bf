"""What a person asks of a run: clauses that are understood, or refused with a reason, and never passed unmeasured."""

import pytest

from luciole.bench.objective import read_clause, unmet_clauses
from luciole.bench.profiles import PROFILES
from luciole.bench.result import Repeat
from luciole.bench.verdict import Usage
from tests.bench.deciding.some_results import lags

STEADY = PROFILES["steady"]


def a_repeat() -> Repeat:
    return Repeat(index=0, figures={"on_time_share": 0.995}, distributions={"start_lag": lags(7_500, 9_000)})


@pytest.mark.parametrize(
    ("clause", "met"),
    [
        ("start_lag<=10ms", True),
        ("start_lag <= 8ms", False),
        ("start_lag.p50<=8000", True),
        ("start_lag.max>=8900", True),
        ("start_lag.p50>=9ms", False),
        ("on_time_share>=99.5%", True),
        ("on_time_share>=0.999", False),
    ],
)
def test_a_clause_counts_in_the_unit_of_its_metric(clause: str, met: bool) -> None:  # noqa: FBT001 - what is expected
    unmet = unmet_clauses([read_clause(STEADY, clause)], a_repeat())
    assert (not unmet) is met
    assert all(line.startswith(f"{clause}: it is ") for line in unmet)


@pytest.mark.parametrize("clause", ["missed<=0", "on_time_share.p50>=1"])
def test_what_was_not_measured_was_not_met(clause: str) -> None:
    assert unmet_clauses([read_clause(STEADY, clause)], a_repeat()) == [f"{clause}: this run did not measure it"]


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("fast", "is no clause"),
        ("start_lag<5ms", "is no clause"),
        ("fire_lag<=5ms", "it has no metric 'fire_lag'"),
        ("start_lag<=soon", "'soon' is no amount of us"),
        ("missed<=few", "'few' is no amount of fires"),
        ("missed<=%", "'%' is no amount of fires"),
    ],
)
def test_a_clause_that_can_not_be_understood_is_refused(clause: str, said: str) -> None:
    with pytest.raises(Usage, match=said):
        read_clause(STEADY, clause)
