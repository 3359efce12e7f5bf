import pytest
from hypothesis import given
from hypothesis import strategies as st

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.job import EntryFlag, JobSpec, Misfire, Overlap
from luciole.model.schedule import OverlapCode, Policy, pack_policy, unpack_entry_traits, unpack_policy


@given(
    misfire=st.sampled_from([Misfire.FIRE_ONCE, Misfire.SKIP]),
    overlap=st.sampled_from(list(Overlap)),
    late_ms=st.integers(0, limits.DAY_US * 365 // limits.MS_US),
    priority=st.integers(limits.PRIORITY_MIN, limits.PRIORITY_MAX),
    at_most_once=st.booleans(),
)
def test_a_packed_policy_says_all_that_planning_needs(
    *, misfire: Misfire, overlap: Overlap, late_ms: int, priority: int, at_most_once: bool
) -> None:
    policy = Policy(misfire=misfire, overlap=overlap, misfire_after_us=late_ms * limits.MS_US)
    job = JobSpec(handler="h", priority=priority, at_most_once=at_most_once)
    packed = pack_policy(policy, job)
    assert 0 <= packed < 1 << 62
    code, read_priority, flags = unpack_entry_traits(packed)
    assert (code.name.lower(), read_priority) == (overlap.value, priority)
    assert bool(flags & EntryFlag.AT_MOST_ONCE) == at_most_once
    assert bool(flags & EntryFlag.RELEASES) == (code in {OverlapCode.QUEUE_ONE, OverlapCode.REPLACE})
    assert unpack_policy(packed) == policy


def test_a_catch_up_policy_keeps_its_limit() -> None:
    policy = Policy(misfire=Misfire.CATCH_UP, catch_up_limit=limits.CATCH_UP_MAX, overlap=Overlap.ALLOW)
    assert unpack_policy(pack_policy(policy, JobSpec(handler="h"))) == policy


@pytest.mark.parametrize("packed", [-1, 3 << 2, 1 << 59])
def test_a_number_that_is_no_policy_is_refused(packed: int) -> None:
    with pytest.raises(InvalidValue, match="policy"):
        unpack_policy(packed)
