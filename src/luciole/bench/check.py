"""The checker: asks the store, after the window, whether all of it happened and nothing twice.

It imports no store code: a fault there can't hide itself here. The questions stand in `checks/questions.sql`.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.bench.result import Check

#: Values of the questions, by name.
Values: TypeAlias = Mapping[str, int | str]

#: A name after one colon; two make a cast.
_NAME = re.compile(r"(?<!:):([a-z_]+)")
_QUESTION = re.compile(r"^-- name: (\w+)\n-- of: ([^\n]+)\n-- expect: ([^\n]+)\n(.*?);", re.DOTALL | re.MULTILINE)
_EXPECTED = re.compile(r"(=|>) (:?)(\w+)")


class Question(NamedTuple):
    """One statement that answers with one number."""

    name: str
    of: frozenset[str]  #: the kinds of run that ask it
    expect: str  #: "= 0", "= :jobs", "> 0", or "read": the answer is a value, not a judgement
    sql: str


@cache
def questions() -> tuple[Question, ...]:
    """Return all questions, in order."""
    source = (files("luciole.bench.checks") / "questions.sql").read_text(encoding="utf-8")
    return tuple(
        Question(name, frozenset(of.split()), expect, sql.strip())
        for name, of, expect, sql in _QUESTION.findall(source)
    )


async def ask(place: Place, names: Sequence[str], values: Values) -> dict[str, int]:
    """Return the answers to some of the questions, by name."""
    kind = kind_of(place)
    chosen = [question for question in questions() if question.name in names]
    found = await _ASKERS[kind](place, chosen, values)
    return {question.name: answer for question, answer in zip(chosen, found, strict=True)}


async def read_back(place: Place) -> dict[str, int]:
    """Return what the store of a run says of its parameters: shards, executions, the largest payload."""
    names = [question.name for question in questions() if "read-back" in question.of]
    return await ask(place, names, {})


async def check(place: Place, of: str, values: Values) -> list[Check]:
    """Ask all questions that judge a kind of run, after its window.

    Args:
        place: where.
        of: "burst" or "enqueue".
        values: jobs, at_us, revision and their like.
    """
    kind = kind_of(place)
    chosen = [question for question in questions() if of in question.of and question.expect != "read"]
    found = await _ASKERS[kind](place, chosen, values)
    return [
        judge(question.name, "store", question.expect, answer, values)
        for question, answer in zip(chosen, found, strict=True)
    ]


def judge(name: str, source: Any, expect: str, found: int, values: Values) -> Check:  # noqa: ANN401 - a literal of `Check`
    """Compare an answer with what was expected of it."""
    matched = _EXPECTED.fullmatch(expect)
    assert matched, expect
    sign, by_name, word = matched.groups()
    bound = int(values[word] if by_name else word)
    passed = found == bound if sign == "=" else found > bound
    return Check(name=name, source=source, expected=f"{sign} {bound}", found=found, passed=passed)


def kind_of(place: Place) -> str:
    """Return which set of questions fits a place."""
    return "sqlite" if place.dsn.startswith("sqlite:") else "postgres"


async def _ask_sqlite(place: Place, chosen: Sequence[Question], values: Values) -> list[int]:
    connection = sqlite3.connect(f"file:{sqlite_path(place.dsn)}?mode=ro", uri=True)
    try:
        return [int(connection.execute(question.sql, dict(values)).fetchone()[0]) for question in chosen]
    finally:
        connection.close()


async def _ask_postgres(place: Place, chosen: Sequence[Question], values: Values) -> list[int]:
    connection = await connect_postgres(place)
    try:
        return [int(await connection.fetchval(*_numbered(question.sql, values))) for question in chosen]
    finally:
        await connection.close()


def _numbered(sql: str, values: Values) -> tuple[Any, ...]:
    """Return a statement with `$1`, typed by its value, for each name, and the values in that order."""
    names = list(dict.fromkeys(_NAME.findall(sql)))
    places = {
        name: f"${number}::{'bigint' if isinstance(values[name], int) else 'text'}"
        for number, name in enumerate(names, 1)
    }
    return (_NAME.sub(lambda found: places[found[1]], sql), *(values[name] for name in names))


_ASKERS = {"sqlite": _ask_sqlite, "postgres": _ask_postgres}
