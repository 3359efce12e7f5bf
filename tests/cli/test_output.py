"""What people read: widths, colours, times in words."""

import pytest

from luciole import limits
from luciole.cli.output import Column, distance, print_facts, print_table, span
from luciole.cli.run import hide_passwords

COLUMNS = (Column(title="name", shrinks=True), Column(title="count", right=True))


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [("a", "1"), ("longer", "100")], empty="none")
    assert capsys.readouterr().out.splitlines() == ["NAME    COUNT", "a           1", "longer    100"]


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [], empty="none yet")
    assert capsys.readouterr().out == "none yet\n"


def test_a_narrow_terminal_cuts_what_may_shrink(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_table(COLUMNS, [("x" * 100, "1")], empty="")
    title, row = capsys.readouterr().out.splitlines()
    assert (len(title), len(row), row[-8:]) == (60, 60, "…      1"[-8:])


def test_what_a_terminal_would_obey_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({"error": "bad \x1b[2J\x07 news", "left out": None})
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert "\x07" not in out
    assert out == "error  bad �[2J� news\n"


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0, "0 ms"),
        (340 * limits.MS_US, "340 ms"),
        (5 * limits.SECOND_US, "5 s"),
        (2 * limits.HOUR_US + 5 * limits.MINUTE_US + limits.SECOND_US, "2 h 5 min"),
        (limits.DAY_US, "1 d"),
        (limits.DAY_US + limits.MINUTE_US, "1 d"),
    ],
)
def test_a_span_is_said_in_two_units(duration_us: int, text: str) -> None:
    assert span(duration_us) == text


def test_a_distance_has_a_direction() -> None:
    assert (distance(10, 0)[:2], distance(0, limits.SECOND_US), distance(None, 0)) == ("in", "1 s ago", "-")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:s3cr:et@host/db is down", "postgresql://me:***@host/db is down"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://me:p@ss/w@host/db", "postgresql://me:***@host/db"),
        ("see https://host:80/page", "see https://host:80/page"),
    ],
)
def test_a_password_is_hidden(text: str, shown: str) -> None:
    assert hide_passwords(text) == shown
