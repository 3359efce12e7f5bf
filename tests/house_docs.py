"""House rules of the pages: links lead somewhere, commands exist, invariants are guarded by tests."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`([\w/.]+\.py)::(\w+)`")
TAG = re.compile(r"(?:#|--) ((?:I\d+, )*I\d+):")


def pages(root: Path) -> Iterator[Path]:
    """The Markdown pages of the tree."""
    yield from sorted(root.glob("*.md"))
    yield from sorted((root / "docs").rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """The anchors that a reader's browser finds on a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def links(root: Path) -> Iterator[str]:
    """A link inside the tree leads to a file that is there, and to a heading on it."""
    for page in pages(root):
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for match in LINK.finditer(text):
            target = match[1] or match[2]
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = unquote(target).partition("#")
            path = page.parent / name if name else page
            where = f"{page.relative_to(root)}: {target}"
            if not path.exists():
                yield f"{where}: no such file"
            elif anchor and path.suffix == ".md" and anchor not in anchors(path):
                yield f"{where}: no such heading"


def _commands(page: Path, program: str) -> Iterator[str]:
    """The first word after a program's name, in fences and in `code`."""
    text = page.read_text(encoding="utf-8")
    code = [*FENCE.findall(text), *re.findall(r"`([^`\n]+)`", FENCE.sub("", text))]
    for piece in code:
        yield from re.findall(rf"^(?:\$ )?{program} ([a-z][\w-]*)", piece, re.MULTILINE)


def make_targets(root: Path) -> Iterator[str]:
    """Each `make` that a page speaks of is a target."""
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in pages(root):
        for name in _commands(page, "make"):
            if name not in targets:
                yield f"{page.relative_to(root)}: make {name}: no such target"


def luciole_commands(root: Path, is_command: Callable[[str], bool]) -> Iterator[str]:
    """Each `luciole` that a page speaks of is a command."""
    for page in pages(root):
        for name in sorted(set(_commands(page, "luciole"))):
            if not is_command(name):
                yield f"{page.relative_to(root)}: luciole {name}: no such command"


def tests_named(root: Path) -> Iterator[str]:
    """Each test that a page names as `file::test` exists."""
    for page in pages(root):
        for path, name in TEST.findall(page.read_text(encoding="utf-8")):
            file = root / path
            if not file.exists() or not re.search(rf"def {name}\(", file.read_text(encoding="utf-8")):
                yield f"{page.relative_to(root)}: {path}::{name}: no such test"


def tags(folder: Path, *, without: str = "") -> set[str]:
    """The invariants that comments in a folder are tagged with, such as `I3`."""
    found: set[str] = set()
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.sql")]):
        if not without or without not in path.relative_to(folder).parts:
            for match in TAG.finditer(path.read_text(encoding="utf-8")):
                found |= set(match[1].split(", "))
    return found


def invariants(root: Path, required: frozenset[str]) -> Iterator[str]:
    """An invariant that code relies on has a test that guards it; the required ones have both."""
    code = tags(root / "src/luciole", without="testing")
    guarded = tags(root / "tests") | tags(root / "src/luciole/testing")
    for name in sorted(required - code):
        yield f"{name}: no code is tagged with it"
    for name in sorted(required - guarded):
        yield f"{name}: no test is tagged with it"
