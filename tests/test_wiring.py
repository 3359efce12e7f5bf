"""An address chooses the store, and what its commits survive."""

import sqlite3
from pathlib import Path

import pytest

from luciole.errors import InvalidValue
from luciole.store.sql.sqlite import connecting, dialect
from luciole.wiring import make_store


@pytest.mark.parametrize(
    ("words", "level"), [("", 2), ("?durability=full", 2), ("?durability=normal", 1), ("?durability=off", 0)]
)
async def test_an_address_says_what_a_commit_to_sqlite_survives(
    words: str, level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []
    connect = connecting.connect

    def noted(*arguments: object, **named: object) -> sqlite3.Connection:
        opened.append(connect(*arguments, **named))  # type: ignore[arg-type] # passed on as they came
        return opened[-1]

    monkeypatch.setattr(dialect, "connect", noted)
    store = make_store(f"sqlite:///{tmp_path / 'one.db'}{words}")
    await store.open()
    try:
        levels = {one.execute("PRAGMA synchronous").fetchone()[0] for one in opened}
    finally:
        await store.close()
    assert (tmp_path / "one.db").exists()
    assert levels == {level}


@pytest.mark.parametrize("words", ["?durability=most", "?durability=", "?synchronous=off", "?durability"])
def test_an_address_that_asks_sqlite_for_what_it_has_not_is_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"durability=full\|normal\|off"):
        make_store(f"sqlite:///{tmp_path / 'one.db'}{words}")
