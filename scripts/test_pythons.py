"""Run the fast tests on the oldest and the newest supported Python present, besides the one of .venv."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTEST = ("-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", "not slow and not postgres")

Version = tuple[int, int]


def supported() -> list[Version]:
    """The versions that the package claims, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = (re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", c) for c in project["classifiers"])
    return sorted((3, int(match[1])) for match in found if match)


def candidates(version: Version) -> list[Path]:
    """Where an interpreter of this version may be: on the path, or in a pyenv."""
    name = "python{}.{}".format(*version)
    on_path = shutil.which(name)
    pyenv = sorted((Path.home() / ".pyenv/versions").glob("{}.{}.*/bin/python".format(*version)), reverse=True)
    return [*([Path(on_path)] if on_path else []), *pyenv]


def works(python: Path, version: Version) -> bool:
    """Whether it starts and is what its name says (a shim may be neither)."""
    code = f"import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != {version})"
    return subprocess.run([python, "-c", code], check=False, capture_output=True).returncode == 0


def find(version: Version) -> Path | None:
    """An interpreter of this version, or None when there is none here."""
    return next((python for python in candidates(version) if works(python, version)), None)


def main() -> int:
    """Run them; return 1 when one failed."""
    here: Version = sys.version_info[:2]
    present = {version: find(version) for version in supported()}
    present[here] = Path(sys.executable)
    found = sorted(version for version, python in present.items() if python)
    failed = False
    for version in sorted({found[0], found[-1]} - {here}):
        folder = ".venv-{}.{}".format(*version)
        subprocess.run(["scripts/setup", folder, str(present[version])], cwd=ROOT, check=True)
        print("Python {}.{}:".format(*version), flush=True)
        failed |= subprocess.run([f"{folder}/bin/python", *PYTEST], cwd=ROOT, check=False).returncode != 0
    print("Python {}.{} of .venv ran in the other targets.".format(*here))
    print("Versions present:", ", ".join("{}.{}".format(*version) for version in found))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
