"""How statements and their rows reach SQLite: in pieces, through the temporary table, or one by one."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from luciole.store.sql.queries import load, parse
from luciole.store.sql.script import Query
from luciole.store.sql.sqlite.binding import BATCH_TABLE, Prepared, Table

TEXTS = """
-- name: pairs
-- rows: number bigint, name text
SELECT batch.number, batch.name, :mark, {now_us}, :mark FROM {rows} WHERE batch.number > :least;

-- name: keep
-- rows: number bigint, name text
INSERT INTO kept (number, name) SELECT number, name FROM {rows};
UPDATE kept SET name = kept.name || :suffix FROM {rows} WHERE kept.number = batch.number RETURNING kept.number;

-- name: each_after
-- each: number bigint
SELECT number, :number, :step FROM kept WHERE number > :number ORDER BY number LIMIT :step;

-- name: each_insert
-- each: number bigint, name text
INSERT INTO kept (number, name) VALUES (:number, :name || :suffix);

-- name: total
SELECT count(*), :least FROM kept WHERE number >= :least;
"""
PREPARED = {statement.name: Prepared(statement) for statement in parse(TEXTS)}
SIZES = (1, 7, 8, 63, 64, 65, 127, 128, 129, 500)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, name)")
        made.execute(BATCH_TABLE)
        yield made


def ask(connection: sqlite3.Connection, name: str, *, table: Table | None = None, **values: Any) -> list[Any]:  # noqa: ANN401 - as bound
    rows = values.pop("rows", ())
    return [tuple(row) for row in PREPARED[name].run(connection, Query(name, values, rows), 5, table)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("has_table", [False, True])
def test_rows_of_any_number_arrive_in_order_beside_the_other_values(
    connection: sqlite3.Connection, size: int, *, has_table: bool
) -> None:
    rows = [(number, f"n{number}") for number in range(size)]
    found = ask(connection, "pairs", rows=rows, mark="m", least=-1, table=Table() if has_table else None)
    assert found == [(number, name, "m", 5, "m") for number, name in rows]


@pytest.mark.parametrize("size", SIZES)
def test_all_commands_see_the_same_rows_and_one_answers(connection: sqlite3.Connection, size: int) -> None:
    rows = [(number, "x") for number in range(size)]
    assert sorted(ask(connection, "keep", rows=rows, suffix="!")) == [(number,) for number in range(size)]
    assert connection.execute("SELECT count(*) FROM kept WHERE name = 'x!'").fetchone() == (size,)


@pytest.mark.parametrize("value", [None, 0, 1 << 62, -(1 << 63), 1.5, "text", "1", b"\x00\xff", ""])
@pytest.mark.parametrize("size", [1, 200])
def test_values_come_through_as_they_are(connection: sqlite3.Connection, value: object, size: int) -> None:
    rows = [(number, value) for number in range(size)]
    found = ask(connection, "pairs", rows=rows, mark=value, least=-1, table=Table())
    assert {(type(row[1]), row[1]) for row in found} == {(type(value), value)}
    assert {(type(row[2]), row[2]) for row in found} == {(type(value), value)}


def test_what_all_rows_share_stays_out_of_the_table_and_comes_back_with_each(connection: sqlite3.Connection) -> None:
    loads: list[str] = []
    connection.set_trace_callback(lambda text: loads.append(text) if "INSERT INTO temp" in text else None)
    table, rows = Table(), [(7, f"n{number}") for number in range(200)]
    assert ask(connection, "pairs", rows=rows, mark="m", least=6, table=table) == [
        (7, name, "m", 5, "m") for _, name in rows
    ]
    assert (table.own, table.shared) == ((1,), (7,))
    assert all("(c1) VALUES" in text for text in loads)
    # Rows that are all the same are still so many rows.
    assert ask(connection, "pairs", rows=[(7, "x")] * 200, mark=0, least=6, table=table) == [(7, "x", 0, 5, 0)] * 200


def test_ever_new_forms_of_a_batch_are_not_kept_for_ever(connection: sqlite3.Connection) -> None:
    """I10: what the columns of batches have in common is for their senders to say."""
    names = [f"n{number}" for number in range(9)]
    (statement,) = parse(
        f"-- name: wide\n-- rows: {', '.join(f'{name} bigint' for name in names)}\n"
        f"SELECT {', '.join(names)} FROM {{rows}};"
    )
    prepared = Prepared(statement)
    for mask in range(1, 1 << len(names)):
        rows = [tuple(number if mask >> place & 1 else 0 for place in range(len(names))) for number in range(128)]
        assert prepared.run(connection, Query("wide", {}, rows), 5, Table()) == rows
    assert 0 < len(prepared.formed) <= 64


def test_a_batch_without_rows_is_not_run(connection: sqlite3.Connection) -> None:
    assert ask(connection, "keep", rows=[], suffix="!") == []
    assert ask(connection, "each_insert", rows=[], suffix="!") == []


def test_row_by_row_statements_answer_in_the_order_of_their_rows(connection: sqlite3.Connection) -> None:
    ask(connection, "each_insert", rows=[(number, "x") for number in range(5)], suffix="?")
    assert connection.execute("SELECT DISTINCT name FROM kept").fetchall() == [("x?",)]
    assert ask(connection, "each_after", rows=[(2,), (0,)], step=2) == [(3, 2, 2), (4, 2, 2), (1, 0, 2), (2, 0, 2)]
    assert ask(connection, "total", least=1) == [(4, 1)]


def test_the_table_is_loaded_once_for_the_same_rows_and_anew_for_others(connection: sqlite3.Connection) -> None:
    table = Table()
    rows = [(number, "a") for number in range(200)]
    loads: list[str] = []
    connection.set_trace_callback(lambda text: loads.append(text) if "DELETE FROM temp" in text else None)
    for _ in range(2):
        assert len(ask(connection, "pairs", rows=rows, mark=0, least=-1, table=table)) == 200
    assert len(ask(connection, "pairs", rows=rows[:150], mark=0, least=-1, table=table)) == 150
    assert len(loads) == 2


@pytest.mark.parametrize("form", [1, 8, (0,)])
def test_only_plain_question_marks_are_bound(form: int | tuple[int, ...]) -> None:
    """Python 3.12.0 warns of every other kind."""
    texts = [
        command.text
        for statement in load("luciole.store.sql.sqlite").values()
        for command in Prepared(statement).commands(1 if statement.each else form)
    ]
    assert [text for text in texts if re.search(r"\?\d|[:@$][a-z]", text)] == []
