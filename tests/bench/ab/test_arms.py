"""Revisions become folders, and the folders are gone afterwards, whatever happens in between."""

import subprocess
from pathlib import Path

import pytest

from luciole.bench.ab.arms import sides
from luciole.bench.verdict import Usage


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a working copy with two revisions: what they measure is "one" and "two"."""
    root = tmp_path / "copy"
    package = root / "src/luciole/bench"
    package.mkdir(parents=True)
    git(root, "init", "--quiet")
    for word in ("one", "two"):
        (package / "word").write_text(word, encoding="utf-8")
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", word)
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "worktrees"
    found.mkdir()
    return found


def word(source: Path) -> str:
    return (source / "luciole/bench/word").read_text(encoding="utf-8")


def test_each_side_holds_its_own_revision_and_nothing_is_left(copy: Path, folder: Path) -> None:
    with sides("HEAD~1", "HEAD", folder, start=copy / "src") as (base, head):
        assert (word(base.source), word(head.source)) == ("one", "two")
        assert (base.revision, base.dirty) == (git(copy, "rev-parse", "HEAD~1"), False)
    assert list(folder.iterdir()) == []
    assert len(git(copy, "worktree", "list").splitlines()) == 1


def test_the_working_copy_is_taken_as_it_is_and_says_that_it_was_changed(copy: Path, folder: Path) -> None:
    (copy / "src/luciole/bench/word").write_text("three", encoding="utf-8")
    with sides("HEAD", ".", folder, start=copy) as (base, head):
        assert (word(base.source), word(head.source)) == ("two", "three")
        assert head.dirty
    assert word(copy / "src") == "three"


def test_an_interruption_leaves_no_worktree(copy: Path, folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt), sides("HEAD~1", "HEAD", folder, start=copy):
        raise KeyboardInterrupt
    assert list(folder.iterdir()) == []
    assert len(git(copy, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("wrong", ["nowhere", "--help", "HEAD:src"])
def test_a_revision_that_git_does_not_know_is_refused(copy: Path, folder: Path, wrong: str) -> None:
    with pytest.raises(Usage, match="git rev-parse: "), sides("HEAD", wrong, folder, start=copy):
        pass
    assert list(folder.iterdir()) == []


def test_a_revision_without_a_bench_is_refused(copy: Path, folder: Path) -> None:
    git(copy, "rm", "--quiet", "-r", "src")
    git(copy, "commit", "--quiet", "-m", "none")
    with pytest.raises(Usage, match="has no bench"), sides("HEAD~1", "HEAD", folder, start=copy):
        pass
    assert list(folder.iterdir()) == []


def test_outside_a_working_copy_there_is_nothing_to_compare(folder: Path) -> None:
    with pytest.raises(Usage, match="not a git repository"), sides("HEAD", ".", folder, start=folder):
        pass
