"""The house rules that no other tool checks, as functions from a tree of files to its violations."""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
CLASS_LINES_MAX = 300
PUBLIC_METHODS_MAX = 15
PUBLIC_NAMES_MAX = 30

#: Module names that say nothing about what is inside.
EMPTY_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}

#: Words that the table of words replaced: one word per thing.
REPLACED_WORDS = {
    "broker": "gateway",
    "bucket": "shard",
    "callback": "handler",
    "reap": "rescue",
    "reaper": "rescuer",
    "worker": "executor",
}

#: What Python calls what it asks of a thing, whatever we call it.
NAMES_OF_PYTHON = {"add_done_callback"}

#: What pure decisions have no use for, although it comes with Python.
IMPURE = {
    "asyncio", "concurrent", "http", "io", "logging", "multiprocessing", "os", "queue", "random", "secrets",
    "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile",
    "threading", "time", "urllib", "warnings",
}  # fmt: skip

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

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def at(self, node: ast.AST) -> str:
        """Where a violation is, as an editor understands it."""
        return f"{self.path.relative_to(self.root)}:{getattr(node, 'lineno', 1)}"


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
    for node in source.nodes:
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


def names(root: Path) -> Iterator[str]:
    """A name says what is inside."""
    for source in sources(root, "src", "tests", "scripts"):
        parts = source.path.relative_to(root).with_suffix("").parts
        for empty in EMPTY_NAMES & set(parts):
            yield f"{source.at(source.tree)}: the name {empty} says nothing; name it by what it holds"
        for node in source.nodes:
            if isinstance(node, ast.ClassDef) and re.match(r"_?Base[A-Z_]|_?Base$|.*Manager$", node.name):
                yield f"{source.at(node)}: {node.name}: no Base… and no …Manager; say what it is or does"


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def _defined(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """The names that a file gives to its own things."""
    yield source.tree, source.path.stem
    for node in source.nodes:
        if isinstance(node, ast.ClassDef | Function):
            yield node, node.name
        elif isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node, node.target.id


def words(root: Path) -> Iterator[str]:
    """One word per thing. The bench speaks of the systems that it compares with, in their words."""
    for source in sources(root, "src/luciole"):
        if source.path.relative_to(root / "src/luciole").parts[0] == "bench":
            continue
        for node, name in _defined(source):
            for word in sorted(_words(name) & REPLACED_WORDS.keys() if name not in NAMES_OF_PYTHON else ()):
                yield f"{source.at(node)}: {name}: the word for a {word} is {REPLACED_WORDS[word]}"


def public_names(root: Path) -> Iterator[str]:
    """The package offers a few names from elsewhere and holds nothing itself but what imports them when used."""
    source = Source(root, root / "src/luciole/__init__.py")
    imported: dict[str, str] = {}
    places: dict[str, str] = {}
    offered: set[str] = set()
    body = source.tree.body[1:]  # The docstring is ruff's.
    typed = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for node in (*body, *(inner for one in typed for inner in one.body)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("luciole."):
            imported |= {alias.asname or alias.name: node.module or "" for alias in node.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            offered |= set(ast.literal_eval(node.value))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PLACES":
            places |= ast.literal_eval(node.value)
        elif node not in typed and ast.unparse(node).partition("\n")[0] not in _LAZINESS:
            yield f"{source.at(node)}: only imports from luciole, and what does them when used, stand here"
    if set(imported) != offered:
        yield f"{source.at(source.tree)}: imported and offered differ: {sorted(set(imported) ^ offered)}"
    if typed and places != imported:
        yield f"{source.at(source.tree)}: _PLACES differ: {sorted(dict(places.items() ^ imported.items()))}"
    if len(offered) > PUBLIC_NAMES_MAX:
        yield f"{source.at(source.tree)}: {len(offered)} public names; at most {PUBLIC_NAMES_MAX}"


#: What imports the public names when they are first used.
_LAZINESS = {
    "from importlib import import_module",
    "from typing import TYPE_CHECKING",
    "def __getattr__(name: str) -> object:",
}


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def pure_model(root: Path) -> Iterator[str]:
    """The model knows values and decisions: no other package, no I/O, no clock, no logging."""
    for source in sources(root, "src/luciole/model"):
        for node in source.nodes:
            for name in _imported(node):
                package = name.split(".")[0]
                if package != "luciole" and (package not in sys.stdlib_module_names or package in IMPURE):
                    yield f"{source.at(node)}: the model does not import {name}"


def frozen_values(root: Path) -> Iterator[str]:
    """A value of the model changes by becoming a new one, and its fields are given by name."""
    wanted = {"frozen", "slots", "kw_only"}
    for source in sources(root, "src/luciole/model"):
        for node in source.nodes:
            for mark in node.decorator_list if isinstance(node, ast.ClassDef) else []:
                if not ast.unparse(mark).startswith(("dataclass", "dataclasses.dataclass")):
                    continue
                keywords = mark.keywords if isinstance(mark, ast.Call) else []
                given = {word.arg for word in keywords if ast.unparse(word.value) == "True"}
                for missing in sorted(wanted - given):
                    yield f"{source.at(mark)}: the dataclass says {missing}=True"


def _is_stub(body: list[ast.stmt]) -> bool:
    rest = [node for node in body if not (isinstance(node, ast.Expr) and _is_text(node.value))]
    return len(rest) == 1 and ast.unparse(rest[0]) in {"...", "pass"}


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _may_be_empty(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return any(ast.unparse(base).split("[")[0].endswith("Protocol") for base in node.bases)
    return isinstance(node, Function) and any("overload" in ast.unparse(d) for d in node.decorator_list)


def no_stubs(root: Path) -> Iterator[str]:
    """What is there works; what does not work is not there."""
    for source in sources(root, "src", "scripts"):
        promised = {inner for node in source.nodes if _may_be_empty(node) for inner in ast.walk(node)}
        for node in source.nodes:
            if isinstance(node, Function) and node not in promised and _is_stub(node.body):
                yield f"{source.at(node)}: {node.name} does nothing; write it or leave it out"
            if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                yield f"{source.at(node)}: {node.id}: write it or leave it out"


def no_sleeps(root: Path) -> Iterator[str]:
    """Outside the runtime nobody waits for a span of time; a test waits for what it wants to see."""
    inside = ("model", "wire", "store", "engine", "gateway", "executor", "service", "testing")
    for source in sources(root, "tests", *(f"src/luciole/{package}" for package in inside)):
        for node in source.nodes:
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in {"asyncio.sleep", "sleep"}
                and [ast.unparse(argument) for argument in node.args] != ["0"]
            ):
                yield f"{source.at(node)}: wait for an event, or let a Clock pass the time"


def no_home_paths(root: Path) -> Iterator[str]:
    """Nothing here knows the machine that it was written on."""
    for source in sources(root, "src", "tests", "scripts"):
        for match in re.finditer(r"/(?:home|root|Users)/\w+", source.text):
            line = source.text.count("\n", 0, match.start()) + 1
            yield f"{source.path.relative_to(root)}:{line}: a path of one machine: {match[0]}"


RULES: tuple[Rule, ...] = (
    sizes,
    names,
    words,
    public_names,
    pure_model,
    frozen_values,
    no_stubs,
    no_sleeps,
    no_home_paths,
)
