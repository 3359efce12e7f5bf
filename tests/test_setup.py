"""The set-up of a fresh machine says what it lacks, and does its work once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def set_up(folder: Path, programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "scripts/setup", str(folder)],
        cwd=ROOT, check=False, capture_output=True, text=True,
        env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **variables},
    )  # fmt: skip


def test_a_python_that_is_too_old_is_named_with_the_way_out(tmp_path: Path) -> None:
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python"):
        script(tmp_path / "bin" / name, 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac')
    done = set_up(tmp_path / "venv", tmp_path / "bin")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; found: Python 3.9.2" in done.stderr
    assert "apt-get install" in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.skipif(bool(shutil.which("uv", path="/usr/bin:/bin")), reason="uv makes the environment")
def test_a_python_that_can_make_no_environment_is_named_with_the_way_out(tmp_path: Path) -> None:
    script(tmp_path / "bin" / "python3", 'case "$1" in -m) mkdir -p "$3"; exit 1;; esac')
    done = set_up(tmp_path / "venv", tmp_path / "bin", PYTHON="python3")
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_an_environment_that_is_up_to_date_is_left_alone(tmp_path: Path) -> None:
    script(tmp_path / "venv/bin/python", f'exec {sys.executable} "$@"')
    script(tmp_path / "bin/uv", f"touch {tmp_path}/used")
    assert set_up(tmp_path / "venv", tmp_path / "bin").returncode == 0
    assert (tmp_path / "used").exists()
    (tmp_path / "used").unlink()
    assert set_up(tmp_path / "venv", tmp_path / "bin").returncode == 0
    assert not (tmp_path / "used").exists()
    (tmp_path / "venv/.stamp").write_text("of another pyproject.toml\n")
    assert set_up(tmp_path / "venv", tmp_path / "bin").returncode == 0
    assert (tmp_path / "used").exists()
