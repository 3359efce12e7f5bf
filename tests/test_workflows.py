"""Workflows: what they run is what was read, and what measures the code of others may write nothing."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / ".github" / "workflows"

workflows = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)


@workflows
def test_each_action_is_pinned_to_a_commit_and_says_which_version_it_is(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", one)] == []


@workflows
def test_code_is_checked_out_without_a_token_to_push_with(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("uses: actions/checkout@") == text.count("persist-credentials: false") > 0


@workflows
def test_what_a_job_may_is_said_and_only_a_job_without_code_may_write(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    jobs = re.split(r"(?m)^  (?=\w+:$)", text.partition("\njobs:\n")[2])
    assert re.search(r"(?m)^permissions:", text)
    for job in jobs:
        assert not ("write" in re.findall(r"(?m)^      [\w-]+: (\w+)$", job) and "actions/checkout@" in job)


def test_pull_requests_are_measured_and_told_by_jobs_of_their_own() -> None:
    text = (FOLDER / "bench.yml").read_text(encoding="utf-8")
    measure, _, publish = text.partition("\n  publish:\n")
    assert "bench ab " in measure
    assert ": write" not in measure
    assert "pull-requests: write" in publish


def test_each_night_is_held_against_the_last_one_and_the_last_release() -> None:
    text = (FOLDER / "nightly.yml").read_text(encoding="utf-8")
    assert 'bench compare "baseline:$name"' in text
    assert '--name "$tag"' in text
    assert "--name rolling" in text
