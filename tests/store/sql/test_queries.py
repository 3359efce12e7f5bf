"""Named statements: how files are read, how a dialect replaces one, how values and macros find their places."""

import re
from importlib.resources import files

import pytest

from luciole.store.sql.queries import bind, binds_of, commands_of, expand, load, parse, returns_rows

DIALECTS = ("luciole.store.sql.sqlite", "luciole.store.sql.postgres")


def test_a_file_is_read_statement_by_statement() -> None:
    one, two = parse(
        """-- A comment about the file; it has a semicolon.

-- name: one
-- rows: shard int, name text
UPDATE t SET x = :x FROM {rows} WHERE t.shard = batch.shard; -- name: no header
DELETE FROM t WHERE y = ';';

-- Said about two.
-- name: two
SELECT 1;
"""
    )
    assert (one.name, two.name) == ("one", "two")
    assert [tuple(column) for column in one.columns] == [("shard", "int"), ("name", "text")]
    assert not one.each
    assert two.commands == ("SELECT 1",)


def test_commands_end_at_a_semicolon_at_the_end_of_a_line() -> None:
    text = "SELECT ';' AS mark,\n    2;\n-- a comment;\nDELETE FROM t;\n"
    assert commands_of(text) == ("SELECT ';' AS mark,\n    2", "DELETE FROM t")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- name: a\nSELECT {clock};", "unknown macros"),
        ("-- name: a\nSELECT 1 FROM {rows};", "go together"),
        ("-- name: a\n-- rows: x int\nSELECT 1;", "go together"),
        ("-- name: a\n", "no command"),
        ("-- name: a\nSELECT 1;\nSELECT 2;", "only one command"),
    ],
)
def test_what_can_not_be_meant_is_refused_when_it_is_read(text: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        list(parse(text))


def test_values_are_found_by_name_and_casts_and_texts_left_alone() -> None:
    command = "SELECT ':no', a::bigint, :one, CAST(:two AS text), (:one)"
    assert binds_of(command) == ["one", "two", "one"]
    assert bind(command, lambda name: f"<{name}>") == "SELECT ':no', a::bigint, <one>, CAST(<two> AS text), (<one>)"


def test_macros_are_replaced_everywhere() -> None:
    assert expand("{now_us} > {now_us} {for_update}", {"now_us": "5", "for_update": ""}) == "5 > 5 "


@pytest.mark.parametrize(
    ("command", "answers"),
    [
        ("SELECT 1", True),
        ("INSERT INTO t SELECT 1", False),
        ("DELETE FROM t WHERE a IN (SELECT 1) RETURNING a", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("UPDATE t SET a = 1", False),
    ],
)
def test_it_is_known_which_commands_answer(command: str, *, answers: bool) -> None:
    assert returns_rows(command) is answers


@pytest.mark.parametrize("package", DIALECTS)
def test_every_override_replaces_a_common_statement_and_says_why(package: str) -> None:
    statements = load(package)
    overrides = list(parse(files(package).joinpath("overrides.sql").read_text(encoding="utf-8")))
    assert overrides
    assert {statement.name for statement in overrides if not statement.why} == set()
    assert all(statements[statement.name] == statement for statement in overrides)


def test_every_query_of_the_scripts_names_a_statement_and_every_statement_is_asked() -> None:
    source = files("luciole.store.sql")
    texts = [entry.read_text(encoding="utf-8") for entry in source.iterdir() if entry.name.endswith(".py")]
    asked = {name for text in texts for name in re.findall(r'Query\(\s*"(\w+)"', text)}
    # Three that one loop asks.
    asked |= {"delete_executions", "delete_attempts", "delete_failures"}
    common = set(load(DIALECTS[0]))
    assert asked == common
