"""The house rules that no other tool checks, as functions from a tree of files to its violations."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
CLASS_LINES_MAX = 300
PUBLIC_METHODS_MAX = 15

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file of the tree."""

    root: Path
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    def at(self, node: ast.AST | int) -> str:
        """Where a violation is, as an editor understands it."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return f"{self.path.relative_to(self.root)}:{line}"


Rule = Callable[[Path], Iterator[str]]


def sources(root: Path, *folders: str) -> Iterator[Source]:
    """All Python files that people write in these folders of the tree, in order."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            if "_pb2" not in path.name:
                yield Source(root, path)


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _sizes_of(source: Source) -> Iterator[tuple[ast.AST, str, int, str, int]]:
    """Each thing that has a size: where, its name, its size, the unit and the limit."""
    yield source.tree, "the file", source.text.count("\n"), "lines", FILE_LINES_MAX
    for node in ast.walk(source.tree):
        if isinstance(node, Function):
            yield node, node.name, _length(node), "lines", FUNCTION_LINES_MAX
        if isinstance(node, ast.ClassDef):
            public = [f for f in node.body if isinstance(f, Function) and not f.name.startswith("_")]
            yield node, node.name, _length(node), "lines", CLASS_LINES_MAX
            yield node, node.name, len(public), "public methods", PUBLIC_METHODS_MAX


def sizes(root: Path) -> Iterator[str]:
    """Nobody reads a longer file, function or class in one sitting."""
    for source in sources(root, "src", "tests", "scripts"):
        for node, name, size, unit, limit in _sizes_of(source):
            if size > limit:
                yield f"{source.at(node)}: {name} has {size} {unit}; at most {limit}"


RULES: tuple[Rule, ...] = (sizes,)
