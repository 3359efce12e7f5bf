"""Rows of the store's own that a partial restore left out: the doctor names the repair, and it is one."""

from pathlib import Path

import pytest

from luciole.cli.run import run
from luciole.errors import StoreCorrupt
from luciole.testing.factories import a_job, a_request
from tests.store.sql.sqlite.files import change, look, opened


async def test_lost_ids_are_restored_beyond_all_that_were_given_out(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(path) as store:
        (first,) = await store.intern_jobs([a_job()])
        await store.enqueue([a_request(5_000, first, 3)])
        given = await store.take_ids(1_024)
        change(path, "DELETE FROM id_segment")
        with pytest.raises(StoreCorrupt, match="run `luciole migrate --repair`"):
            await store.take_ids(1)
        assert [repair.subject for repair in await store.repair()] == ["id_segment"] * 3
        again, second = await store.intern_jobs([a_job(), a_job(handler="second")])
        assert again == first != second
        assert (await store.take_ids(1)).first > max(5_000, given.first + given.count)


async def test_a_lost_number_of_shards_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(path) as store:
        change(path, "DELETE FROM meta WHERE key = 'shards'")
        change(path, "DELETE FROM lease WHERE shard = 3")
        with pytest.raises(StoreCorrupt, match="number of shards is missing"):
            await store.repair()
    assert look(path, "SELECT count(*) FROM lease") == [(3,)]


def test_the_doctor_names_the_repair_and_it_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")  # However narrow, advice is not cut off.
    path = tmp_path / "luciole.db"
    dsn = ("--dsn", f"sqlite:///{path}")
    assert run(["migrate", "--shards", "8", *dsn]) == 0
    change(path, "DELETE FROM lease WHERE shard IN (2, 5)")
    capsys.readouterr()
    assert run(["doctor", *dsn]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "2 of 8 lease rows are missing" in said
    assert "luciole migrate --repair" in said
    assert run(["migrate", "--repair", *dsn]) == 0
    assert "lease: 2 of 8 rows were missing (shards 2, 5); restored with fence" in capsys.readouterr().out
    assert run(["migrate", "--repair", *dsn]) == 0
    assert "nothing to repair" in capsys.readouterr().out
    run(["doctor", *dsn])
    assert "schema fits" in capsys.readouterr().out


def test_nothing_is_made_where_there_is_nothing_to_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "luciole.db"
    assert run(["migrate", "--repair", "--dsn", f"sqlite:///{path}"]) != 0
    assert "Traceback" not in capsys.readouterr().err
    assert not path.exists()
