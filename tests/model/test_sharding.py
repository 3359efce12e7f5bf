"""Which shard a request belongs to: neighbours lie together, and all of them lie everywhere."""

from collections import Counter

from luciole import limits
from luciole.model.execution import request_shard

_SHARDS = 32


def test_neighbouring_ids_share_a_shard_and_their_runs_are_spread_over_all() -> None:
    runs = 3_200
    shards = [request_shard("a", None, number, _SHARDS) for number in range(runs * limits.REQUEST_RUN)]
    by_run = [set(shards[at : at + limits.REQUEST_RUN]) for at in range(0, len(shards), limits.REQUEST_RUN)]
    assert {len(run) for run in by_run} == {1}
    counts = Counter(shard for run in by_run for shard in run)
    assert len(counts) == _SHARDS
    assert 60 <= min(counts.values()) <= max(counts.values()) <= 140  # 100 each on average


def test_a_request_key_alone_decides_the_shard_of_its_request() -> None:
    shards = [{request_shard("a", f"key-{n}", number, _SHARDS) for number in range(0, 2_000, 37)} for n in range(64)]
    assert {len(found) for found in shards} == {1}
    assert len(set().union(*shards)) > _SHARDS // 2


def test_a_segment_of_ids_is_made_of_whole_runs() -> None:
    """Else each client's runs would be cut in two wherever its segments begin."""
    assert limits.ID_SEGMENT % limits.REQUEST_RUN == 0
