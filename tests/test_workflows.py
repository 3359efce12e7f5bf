"""The workflows: whole, bounded, with the least rights, and made of commands that exist."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from luciole.bench.cli import bench
from luciole.bench.profiles import PROFILES
from luciole.bench.result import Result, outcome, write_result
from luciole.bench.verdict import Verdict
from scripts.perf_report import collect, digest, jobs, main, pack, page

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".github/workflows"
NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))

#: What somebody else may have written; put into a script by `${{ }}` it would be run.
UNTRUSTED = re.compile(r"github\.(event\.(?!pull_request\.(number|base\.sha)|before)|head_ref)")


def workflow(name: str) -> dict[str, Any]:
    document: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    document["on"] = document.pop(True)  # YAML 1.1 takes the word for a truth value.
    return document


def steps(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for job in document["jobs"].values():
        for step in job["steps"]:
            yield job, step


def test_there_are_workflows_for_tests_measuring_and_nights() -> None:
    assert NAMES == ["bench.yml", "nightly.yml", "tests.yml"]


@pytest.mark.parametrize("name", NAMES)
def test_every_job_is_bounded_and_begins_with_the_right_to_read_at_most(name: str) -> None:
    document = workflow(name)
    assert document["permissions"] in ({}, {"contents": "read"})
    assert {"name", "on", "jobs", "concurrency"} <= document.keys()
    for job in document["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 360
        assert job["runs-on"] == "ubuntu-24.04"
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= document["jobs"].keys()


@pytest.mark.parametrize("name", NAMES)
def test_actions_have_a_version_and_keep_no_credentials(name: str) -> None:
    for _, step in steps(workflow(name)):
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+\.\d+\.\d+", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", NAMES)
def test_who_may_write_runs_nothing_of_the_repository(name: str) -> None:
    """Goal: code of a pull request never runs beside a token that may change something."""
    for job, step in steps(workflow(name)):
        writes = "write" in str(job.get("permissions", {}))
        if writes:
            assert not step.get("uses", "").startswith("actions/checkout@")
            assert not re.search(r"\.venv|make |scripts/|python", step.get("run", ""))


@pytest.mark.parametrize("name", NAMES)
def test_no_script_is_made_of_what_somebody_else_wrote(name: str) -> None:
    for _, step in steps(workflow(name)):
        inserted = re.findall(r"\$\{\{(.*?)\}\}", step.get("run", ""))
        assert [one for one in inserted if UNTRUSTED.search(one) or "github" in one] == []


@pytest.mark.parametrize("name", NAMES)
def test_scripts_are_sound_and_their_commands_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for _, step in steps(workflow(name)):
        script = re.sub(r"\$\{\{.*?\}\}", "sqlite", step.get("run", ""))
        assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
        for line in script.replace("\\\n", " ").splitlines():
            words = shlex.split(line.partition("|")[0].partition(">")[0])
            if words[:1] == ["make"]:
                assert set(words[1:]) <= targets
            elif words[:2] == [".venv/bin/luciole", "bench"]:
                parse(words[2:])
            elif words and words[0].startswith((".ci/", "scripts/")):
                assert (ROOT / words[0]).stat().st_mode & 0o111
            if words[:1] == ["scripts/perf-report"]:
                assert main([*words[1:], "--list"]) == 0


def parse(words: list[str]) -> None:
    """Parse a command of the bench without running it; a wrong word raises."""
    command: click.Command = bench
    context = click.Context(bench)
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None, name
        command = found
        if isinstance(command, click.Group) and (not words or words[0].startswith("-")):
            break
        context = click.Context(command)
    command.make_context(command.name, list(words), resilient_parsing=False)


def test_a_command_that_does_not_exist_is_seen() -> None:
    with pytest.raises(click.UsageError):
        parse(["run", "bursts"])
    with pytest.raises(click.UsageError):
        parse(["run", "burst", "--sizes", "ci"])


def test_the_report_runs_every_profile_but_those_of_hours_and_what_another_covers() -> None:
    found = jobs([], ["sqlite", "postgres"])
    covered = {name for name in PROFILES if any(job.name == name or job.name.startswith(f"{name}-") for job in found)}
    assert covered == set(PROFILES) - {"soak", "sql-ceiling"}
    for job in found:
        parse([*job.words, "--size", "ci", "--repeats", "5", "--out", "x"])


def test_the_report_packs_medians_spread_and_environment(tmp_path: Path) -> None:
    result = Result(
        profile="burst",
        question="?",
        border="",
        verdict=outcome(Verdict.OK, "fine"),
        started="2026-01-01T00:00:00Z",
        duration_s=1,
        product={"version": "0", "revision": "r", "dirty": False},
        command=[],
        environment={"cpu": "a cpu", "cores": 2},
        backend={"name": "sqlite"},
        requested={},
    )
    write_result(result, tmp_path / "report" / "burst-sqlite")
    (tmp_path / "report" / "broken").mkdir()
    (tmp_path / "report" / "broken" / "result.json").write_text("{", encoding="utf-8")
    found = digest(collect(tmp_path / "report"))
    assert list(found["runs"]) == ["burst-sqlite"]
    assert found["environment"]["cpu"] == "a cpu"
    assert "## burst-sqlite" in page(found)
    archive = pack(tmp_path / "report")
    packed = subprocess.run(["tar", "-tzf", archive], check=True, capture_output=True, text=True).stdout.split()
    assert {"report/digest.json", "report/digest.md", "report/burst-sqlite/result.json"} <= set(packed)
