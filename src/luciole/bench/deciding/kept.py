"""What is kept from run to run beside the code: baselines and noise of each machine, accepted regressions.

```
perf/accepted.toml
perf/machines/FINGERPRINT/noise.json
perf/machines/FINGERPRINT/baselines/NAME/PROFILE-BACKEND.json
```
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from luciole.bench.result import FILE_NAME, Result, read_result, write_result
from luciole.bench.verdict import NotReadable, Usage, Verdict

#: The folder in a working copy.
PERF = Path("perf")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Noise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much the figures of one profile vary on one machine when nothing changes."""

    profile: str
    backend: str
    measured: str  #: when
    revision: str
    repeats: int
    requested: dict[str, object]
    spread: dict[str, float]  #: the standard deviation of the logarithm, by figure


class Kept:
    """The folder."""

    def __init__(self, folder: Path = PERF) -> None:
        self.folder = folder

    @property
    def accepted(self) -> Path:
        """The file of accepted regressions."""
        return self.folder / "accepted.toml"

    def save_baseline(self, result: Result, name: str) -> Path:
        """Keep a result as what later ones are compared with; return its path.

        Raises:
            Usage: the name can't name a folder, or the result is none to compare with.
        """
        if not _NAME.fullmatch(name):
            raise Usage(f"--name: {name!r} is no name of letters, digits, dots and dashes")
        if result.verdict.code not in {Verdict.OK, Verdict.OBJECTIVE_MISSED}:
            raise Usage(f"a baseline must be sound; this result is {result.verdict.word}: {result.verdict.reason}")
        path = self.baseline_path(result, name)
        draft = write_result(result, path.with_suffix(".draft")).replace(path)
        path.with_suffix(".draft").rmdir()
        return draft

    def baseline_path(self, result: Result, name: str) -> Path:
        """Return where the baseline for results like this one lies, whether it is there or not."""
        return self._machine(result) / "baselines" / name / f"{_subject(result)}.json"

    def read_baseline(self, result: Result, name: str) -> Result:
        """Read the baseline for results like this one.

        Raises:
            NotReadable: there is none of this machine, or it can't be read; the message says which there are.
        """
        path = self.baseline_path(result, name)
        if path.exists():
            return read_result(path)
        elsewhere = [found.parts[-4] for found in self.folder.glob(f"machines/*/baselines/{name}/{path.name}")]
        known = f"there are some of {', '.join(sorted(elsewhere))}" if elsewhere else "there is none of any machine"
        raise NotReadable(f"{path}: no baseline {name!r} of this machine ({known}); keep one with `baseline save`")

    def baselines(self) -> Iterator[tuple[Path, Result | NotReadable]]:
        """Yield every baseline with its path, or with why it can't be read."""
        for path in sorted(self.folder.glob("machines/*/baselines/*/*.json")):
            try:
                yield path, read_result(path)
            except NotReadable as error:
                yield path, error

    def read_noise(self, result: Result) -> Noise | None:
        """Return the noise of a result's machine, profile and backend; None: not calibrated.

        Raises:
            NotReadable: the file is not what it should be.
        """
        return self._noises(self._machine(result) / "noise.json").get(_subject(result))

    def save_noise(self, result: Result, noise: Noise) -> Path:
        """Keep the noise of a result's machine, profile and backend; return the path."""
        path = self._machine(result) / "noise.json"
        noises = {**self._noises(path), _subject(result): noise}
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(noises, order="sorted"), indent=1) + b"\n")
        draft.replace(path)
        return path

    def _machine(self, result: Result) -> Path:
        return self.folder / "machines" / str(result.environment.get("fingerprint") or "unknown")

    @staticmethod
    def _noises(path: Path) -> dict[str, Noise]:
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Noise])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise NotReadable(f"{path}: {error}") from None


def results_below(folder: Path) -> Iterator[tuple[Path, Result | NotReadable]]:
    """Yield every result below a folder with its path, or with why it can't be read, ordered by path."""
    for path in sorted({*folder.rglob(FILE_NAME), *folder.rglob("baselines/*/*.json"), *folder.glob("*.json")}):
        try:
            yield path, read_result(path)
        except NotReadable as error:
            yield path, error


def _subject(result: Result) -> str:
    return f"{result.profile}-{result.backend.get('name', 'none')}"
