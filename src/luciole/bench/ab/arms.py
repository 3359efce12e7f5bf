"""The two sides of a comparison as folders of source code; worktrees of git that are gone afterwards."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from luciole.bench.verdict import Usage

#: The working copy as it is, changes that nobody committed included.
WORKING = "."


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side."""

    asked: str  #: as the command names it
    revision: str  #: the full hash
    dirty: bool  #: the working copy differs from it
    source: Path  #: what Python's path begins with


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own words, and a revision that git itself parses
            ["git", "-C", str(folder), "-c", f"core.hooksPath={os.devnull}", *arguments],  # noqa: S607 - the user's git
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise Usage("git: it is needed to bring two revisions together, and is not installed") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["it failed"]
        raise Usage(f"git {arguments[0]}: {said[-1]}") from None
    return done.stdout.strip()


@contextmanager
def sides(base: str, head: str, folder: Path, *, start: Path) -> Iterator[tuple[Side, Side]]:
    """Bring both revisions into folders of their own.

    Args:
        base: a revision, or "." for the working copy.
        head: the same.
        folder: where worktrees are made; it exists.
        start: a folder of the working copy.

    Raises:
        Usage: this is no working copy of Luciole, or git knows no such revision.
    """
    root = Path(_git(start, "rev-parse", "--show-toplevel"))
    with ExitStack() as stack:
        yield (
            stack.enter_context(_side(root, base, folder / "base")),
            stack.enter_context(_side(root, head, folder / "head")),
        )


@contextmanager
def _side(root: Path, asked: str, folder: Path) -> Iterator[Side]:
    if asked == WORKING:
        dirty = _git(root, "status", "--porcelain", "--untracked-files=no") != ""
        yield _known(Side(asked=asked, revision=_git(root, "rev-parse", "HEAD"), dirty=dirty, source=root / "src"))
        return
    revision = _git(root, "rev-parse", "--verify", "--end-of-options", f"{asked}^{{commit}}")
    try:
        _git(root, "worktree", "add", "--quiet", "--detach", str(folder), revision)
        yield _known(Side(asked=asked, revision=revision, dirty=False, source=folder / "src"))
    finally:
        if folder.exists():
            _git(root, "worktree", "remove", "--force", str(folder))
        _git(root, "worktree", "prune")


def _known(side: Side) -> Side:
    if not (side.source / "luciole/bench").is_dir():
        raise Usage(f"{side.asked}: this revision has no bench to measure it with ({side.source / 'luciole/bench'})")
    return side
