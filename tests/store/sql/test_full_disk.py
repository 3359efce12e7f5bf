"""A disk that is really full: a clear error, nothing lost, and work goes on once there is room."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: Room for the ballast and some more: PostgreSQL's empty tables take a part of it.
_DISK = "size=12m,mode=777"


def refuse_without_mounts() -> None:
    """Skip where no file system can be mounted; where no store may be missing, fail."""
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0:
        return
    reason = "a small disk needs the right to mount one: run as root"
    if os.environ.get("STORES") == "all":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_full_disk_is_said_and_survived(kind: str, tmp_path: Path) -> None:
    refuse_without_mounts()
    disk = tmp_path / "disk"
    disk.mkdir()
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(folder.stat().st_mode | 0o011)  # A server that runs as somebody else gets there, too.
    script = f'mount -t tmpfs -o {_DISK} tmpfs "$1" && exec "$2" -m tests.store.sql.full_disk "$3" "$1"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(disk), sys.executable, kind]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert ran.returncode == 0, ran.stderr
    saw = json.loads(ran.stdout)
    assert "full" in saw["said"]
    assert all("full" in said for said in saw["again"])
    assert saw["stored"] > 5
    # Nothing that was acknowledged is lost, nothing that was refused is there.
    assert saw["found"] == saw["stored"]
    assert saw["refused"] == [False] * 3
    assert saw["after"] == [None] * 5
    assert saw["open"] == saw["stored"] + 5
