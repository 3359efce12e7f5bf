"""What nobody should type: an error that says what is wrong, never a traceback."""

from pathlib import Path

import pytest

from luciole.cli.run import run

BAD = {
    "an id of another world": ("executions", "show", "zz-zzzzzzzzzzzzzzzzzzzzzzzz-1-1"),
    "a shard that no store has": ("executions", "show", "99999-1-1-1"),
    "an id with too few parts": ("executions", "cancel", "1-2-3"),
    "a name that is no text": ("schedules", "show", "night\udcff"),
    "a key that is no text": ("jobs", "enqueue", "report", "--key", "\udcff"),
    "a NUL": ("schedules", "show", "a\0b"),
    "arguments that are no JSON": ("jobs", "enqueue", "report", "--args", "{bad"),
    "a handler that nobody declared": ("jobs", "enqueue", "report", "--args", "{}"),
    "a zone that does not exist": ("explain", "--cron", "0 0 * * *", "--tz", "Nowhere/Zone"),
    "a time that never comes": ("explain", "--cron", "0 0 30 2 *"),
    "a duration beyond all bounds": ("explain", "--every", "99999999999999999999d"),
    "a state that there is none": ("executions", "list", "--state", "nope"),
    "a node that is no address": ("executor", "app:app", "--node", "nowhere"),
    "a listener for all without a token": ("node", "--listen", "0.0.0.0:0"),
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_bad_input_is_told_in_one_line(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["migrate"]) == 0
    capsys.readouterr()
    code = run(arguments)
    said = capsys.readouterr().err
    assert code == 2
    assert said.startswith("error: ")
    assert said.count("\n") == 1
