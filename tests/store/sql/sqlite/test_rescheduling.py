"""A selection that moves to one instant, in chunks."""

from pathlib import Path
from typing import Any

import pytest

from luciole import limits
from luciole.testing.factories import a_schedule
from tests.store.sql.sqlite.files import look, opened


async def test_a_large_selection_moves_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else can write meanwhile, so no transaction moves more than the bound."""
    monkeypatch.setattr(limits, "RESCHEDULE_BATCH_MAX", 3)
    path = tmp_path / "a.db"
    async with opened(path) as store:
        far_us = await store.now_us() + limits.HOUR_US
        names = [*(f"run-{n}" for n in range(7)), "run", "s"]
        schedules = [a_schedule(name, fire_us=far_us) for name in names]
        await store.put_schedules(schedules, first_id=(await store.take_ids(9)).first)
        writes: list[None] = []
        write = store._db.write  # noqa: SLF001 - how many transactions it takes is what this is about

        async def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passes through
            writes.append(None)
            return await write(*args, **kwargs)

        monkeypatch.setattr(store._db, "write", counted)  # noqa: SLF001 - same
        assert await store.reschedule("default", "run-", far_us + 1) == 7
        assert len(writes) == 3
    moved = look(path, "SELECT fire_us, count(*) FROM cursor GROUP BY fire_us ORDER BY fire_us")
    assert moved == [(far_us, 2), (far_us + 1, 7)]
