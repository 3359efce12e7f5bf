"""A password that the bench was given stands in nothing that a run leaves behind or says."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from luciole.testing.servers import PostgresServer

PATIENCE_S = 240

#: With what must be quoted in an address, so that a pattern that stops at the first of it would let the rest through.
PASSWORD = "hunter2/@ #:é"


def bench(tmp_path: Path, *words: str) -> str:
    """Run a bench in a process of its own; return all that it said."""
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "luciole", "bench", *words],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_no_artefact_and_no_word_of_a_run_holds_the_password(tmp_path: Path, postgres_wheel: PostgresServer) -> None:
    """Goal: results can be published as they are.

    Method: a burst that succeeds, with all that it may leave: results, reports, ways of jobs, profiles, exports.
    """
    postgres_wheel.execute(f"CREATE ROLE secretive SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    plain = postgres_wheel.create_database()
    dsn = f"postgresql://secretive:{quote(PASSWORD, safe='')}@{plain.rpartition('@')[2]}"
    watched = ("--sample-waits", "--profile-cpu")
    few = ("--size", "smoke", "--jobs", "200", "--ceiling", "none", "--repeats", "1")
    said = bench(
        tmp_path, "run", "burst", "--backend", "postgres", "--dsn", dsn, *few, *watched, "--out", str(tmp_path / "out")
    )
    said += bench(tmp_path, "report", str(tmp_path / "out"), "--html", str(tmp_path / "again.html"))
    said += bench(tmp_path, "repro", str(tmp_path / "out"))
    for form in ("bmf", "gha", "pyperf", "openmetrics", "csv"):
        said += bench(tmp_path, "export", str(tmp_path / "out"), "--as", form, "--out", str(tmp_path / form))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    held = {path.name: path.read_bytes().decode("utf-8", "replace") for path in files} | {"what it said": said}
    assert {"result.json", "report.html", "report.md", "trace.json", "again.html", "csv"} <= held.keys()
    assert "postgresql://secretive:<password>@" in held["result.json"] + said
    assert [name for name, text in held.items() if "hunter2" in text] == []
