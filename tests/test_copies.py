"""How often a payload is copied on its way: counted in the C library, and not more than the ledger says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts/count_copies.py"

#: At most so many, by step. What gRPC and the store's driver copy by themselves is in it.
MOST = {
    "call as bytes": 0,
    "there, in one process": 0,
    "back, in one process": 0,
    "frame as bytes": 1,
    "bytes as frame": 1,
    "bytes as call": 1,
    "result as bytes": 0,
    "there, by gRPC": 5,
    "back, by gRPC": 5,
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="counting takes Linux and a compiler")
def test_a_payload_is_copied_as_seldom_as_the_ledger_says() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--payload", "1000000"], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    counted = {row[0]: float(row[1]) for row in rows[1:]}
    assert {step: round(counted[step], 1) for step in MOST if round(counted[step], 1) > MOST[step]} == {}
