"""The ceiling writes what a burst writes, whole and once, or says that it did not."""

from pathlib import Path

import pytest

from luciole.bench.backends import Place
from luciole.bench.ceiling import measure
from luciole.bench.ceiling.settings import CeilingSetting, Rate, ceiling_of, settings_to_try
from luciole.bench.verdict import InvalidRun
from luciole.runtime.clock import SystemClock

#: Batches smaller than a shard, and so large that several shards share one.
SMALL_AND_WIDE = (CeilingSetting(7, 1), CeilingSetting(200, 2))
JOBS = 640


def test_the_ceiling_is_the_best_of_what_was_tried() -> None:
    slow, fast = Rate(CeilingSetting(500, 2), 100.0, 5), Rate(CeilingSetting(2_000, 3), 300.0, 5)
    found = ceiling_of([slow, fast, slow])
    assert (found.rate, found.batch, found.connections, len(found.tried)) == (300.0, 2_000, 3, 3)


def test_a_full_search_tries_three_batches_and_on_a_server_two_to_four_connections() -> None:
    assert {setting.batch for setting in settings_to_try("sqlite", "full")} == {500, 1_000, 2_000}
    assert {setting.connections for setting in settings_to_try("postgres", "full")} == {2, 3, 4}
    assert len(settings_to_try("postgres", "full")) == 9


async def measured(place: Place) -> list[int]:
    rates = await measure.measure_ceiling(place, SMALL_AND_WIDE, jobs=JOBS, shards=32, triggers=5, clock=SystemClock())
    return [rate.written for rate in rates]


async def test_on_sqlite_every_job_is_written_once(tmp_path: Path) -> None:
    assert await measured(Place(dsn=f"sqlite:///{tmp_path / 'x.db'}")) == [JOBS, JOBS]


async def test_on_postgres_every_job_is_written_once(postgres_dsn: str) -> None:
    assert await measured(Place(dsn=postgres_dsn, schema="luciole")) == [JOBS, JOBS]


async def test_a_ceiling_that_wrote_too_little_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "measure_sqlite", lambda *_, **__: [Rate(SMALL_AND_WIDE[0], 1.0, JOBS - 1)])
    with pytest.raises(InvalidRun, match="wrote 639 of 640"):
        await measured(Place(dsn=f"sqlite:///{tmp_path / 'x.db'}"))
