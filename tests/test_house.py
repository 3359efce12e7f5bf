"""This tree keeps the house rules, and each rule sees what it forbids."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from luciole.cli.run import cli
from tests import house, house_docs

ROOT = Path(__file__).parent.parent

#: The invariants that must be tagged in code and guarded by a test of the same tag.
REQUIRED_INVARIANTS = frozenset(f"I{number}" for number in range(1, 12))


@pytest.mark.parametrize("rule", house.RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_house_rules(rule: house.Rule) -> None:
    assert list(rule(ROOT)) == []


def test_links_lead_somewhere() -> None:
    assert list(house_docs.links(ROOT)) == []


def test_make_targets_in_pages_exist() -> None:
    assert list(house_docs.make_targets(ROOT)) == []


def test_tests_in_pages_exist() -> None:
    assert list(house_docs.tests_named(ROOT)) == []


def test_each_failure_that_is_guarded_against_names_its_guard() -> None:
    page = (ROOT / "docs/guarded-failures.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "guarded by" not in line]
    assert len(rows) > 30
    assert [row for row in rows if not house_docs.TEST.search(row)] == []


def is_command(name: str) -> bool:
    return name in cli.list_commands(click.Context(cli)) and cli.get_command(click.Context(cli), name) is not None


def test_commands_in_pages_exist() -> None:
    assert list(house_docs.luciole_commands(ROOT, is_command)) == []


def test_each_required_invariant_is_guarded() -> None:
    assert list(house_docs.invariants(ROOT, REQUIRED_INVARIANTS)) == []


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def methods(count: int) -> str:
    return "class Wide:\n" + "".join(f"    def m{n}(self): return {n}\n" for n in range(count))


MODEL = "src/luciole/model/x.py"
ENGINE = "src/luciole/engine/x.py"
PUBLIC = "src/luciole/__init__.py"
LAZY = """'''Doc.'''
if TYPE_CHECKING:
    from luciole.x import a
__all__ = ['a']
_PLACES = {'a': 'luciole.x'}
"""

BROKEN = [
    (house.sizes, ENGINE, "x = 1\n" * 601, "the file has 601 lines"),
    (house.sizes, ENGINE, "def long():\n" + "    x = 1\n" * 70, "long has 71 lines"),
    (house.sizes, ENGINE, "class Long:\n" + "    x = 1\n" * 300, "Long has 301 lines"),
    (house.sizes, ENGINE, methods(16), "Wide has 16 public methods"),
    (house.names, "src/luciole/engine/utils.py", "", "the name utils says nothing"),
    (house.names, "tests/helpers/x.py", "", "the name helpers says nothing"),
    (house.names, ENGINE, "class LeaseManager: x = 1", "LeaseManager"),
    (house.names, ENGINE, "class BaseStore: x = 1", "BaseStore"),
    (house.words, ENGINE, "class WorkerPool: x = 1", "the word for a worker is executor"),
    (house.words, ENGINE, "def f(on_done_callback): return 1", "the word for a callback is handler"),
    (house.words, ENGINE, "def reap_lost(): return 1", "the word for a reap is rescue"),
    (house.words, "src/luciole/engine/reaper.py", "", "the word for a reaper is rescuer"),
    (house.words, ENGINE, "bucket: int = 1", "the word for a bucket is shard"),
    (house.public_names, PUBLIC, "'''Doc.'''\nx = 1", "only imports from luciole"),
    (house.public_names, PUBLIC, "'''Doc.'''\nimport asyncio", "only imports from luciole"),
    (house.public_names, PUBLIC, "'''Doc.'''\nfrom luciole.x import a", "differ: ['a']"),
    (house.public_names, PUBLIC, "'''Doc.'''\n__all__ = ['a']", "differ: ['a']"),
    (house.public_names, PUBLIC, "'''Doc.'''\ndef f(): return 1", "only imports from luciole"),
    (house.public_names, PUBLIC, LAZY.replace("'luciole.x'}", "'luciole.y'}"), "_PLACES differ: ['a']"),
    (house.public_names, PUBLIC, f"'''Doc.'''\n__all__ = {[str(n) for n in range(31)]}", "31 public names"),
    (house.pure_model, MODEL, "import msgspec", "does not import msgspec"),
    (house.pure_model, MODEL, "from asyncio import Event", "does not import asyncio"),
    (house.pure_model, MODEL, "def f():\n    import logging", "does not import logging"),
    (house.pure_model, MODEL, "import time", "does not import time"),
    (house.frozen_values, MODEL, "@dataclass\nclass V: x: int", "says frozen=True"),
    (house.frozen_values, MODEL, "@dataclass(frozen=True, slots=True)\nclass V: x: int", "kw_only=True"),
    (house.frozen_values, MODEL, "@dataclass(slots=False)\nclass V: x: int", "says slots=True"),
    (house.no_stubs, ENGINE, "def later(): ...", "later does nothing"),
    (house.no_stubs, ENGINE, "class A:\n    def later(self):\n        '''Doc.'''\n        pass", "later"),
    (house.no_stubs, ENGINE, "def later(): raise NotImplementedError('x')", "NotImplementedError"),
    (house.no_sleeps, "tests/x.py", "async def f(): await asyncio.sleep(0.1)", "wait for an event"),
    (house.no_sleeps, ENGINE, "async def f(): await sleep(pause)", "wait for an event"),
    (house.no_home_paths, ENGINE, "x = '/ho" + "me/me/data'", "a path of one machine"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "name", "text", "seen"), BROKEN)
def test_a_rule_sees_what_it_forbids(tmp_path: Path, rule: house.Rule, name: str, text: str, seen: str) -> None:
    plant(tmp_path, PUBLIC, "'''Doc.'''\n")
    assert list(rule(tmp_path)) == []
    plant(tmp_path, name, text)
    found = list(rule(tmp_path))
    assert any(seen in line and name in line for line in found), found


def test_each_rule_has_something_planted_against_it() -> None:
    assert {rule for rule, *_ in BROKEN} == set(house.RULES)


KEPT = [
    (house.sizes, ENGINE, methods(15) + "    def _own(self): return 1\n"),
    (house.names, "src/luciole/store/sql/common/x.sql", "SELECT 1"),
    (house.names, ENGINE, "class Basement: x = 1"),
    (house.words, "src/luciole/bench/x.py", "def f(workers): return 1\nclass Worker: x = 1"),
    (house.public_names, PUBLIC, "'''Doc.'''\nfrom luciole.app import App\n__all__ = ['App']"),
    (house.public_names, PUBLIC, LAZY),
    (house.pure_model, MODEL, "import dataclasses\nfrom luciole.errors import Rejected"),
    (house.frozen_values, MODEL, "@dataclass(frozen=True, slots=True, kw_only=True)\nclass V: x: int"),
    (house.no_stubs, ENGINE, "class S(Protocol):\n    def verb(self) -> int: ..."),
    (house.no_stubs, ENGINE, "@overload\ndef f(x: int) -> int: ..."),
    (house.no_sleeps, "tests/x.py", "async def f(): await asyncio.sleep(0)"),
    (house.no_sleeps, "src/luciole/runtime/x.py", "async def f(): await asyncio.sleep(1)"),
]


@pytest.mark.parametrize(("rule", "name", "text"), KEPT)
def test_a_rule_lets_pass_what_it_allows(tmp_path: Path, rule: house.Rule, name: str, text: str) -> None:
    plant(tmp_path, PUBLIC, "'''Doc.'''\n")
    plant(tmp_path, name, text)
    assert list(rule(tmp_path)) == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("see [there](nowhere.md)", "nowhere.md: no such file"),
        ("see [there][1]\n\n[1]: docs/nowhere.md", "docs/nowhere.md: no such file"),
        ("see [there](#missing-part)", "no such heading"),
        ("see [there](docs/adr.md#missing)", "no such heading"),
    ],
)
def test_a_dead_link_is_seen(tmp_path: Path, text: str, seen: str) -> None:
    plant(tmp_path, "docs/adr.md", "# A title\n\n```\n# missing\n```\n")
    plant(tmp_path, "README.md", f"# Top `part`\n\n[a](docs/adr.md#a-title) [b](#top-part)\n\n{text}\n")
    (found,) = house_docs.links(tmp_path)
    assert seen in found


def test_a_missing_test_in_a_page_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, "tests/test_x.py", "def test_there(): assert True")
    plant(tmp_path, "README.md", "`tests/test_x.py::test_there` `tests/test_x.py::test_the` `tests/y.py::test_z`")
    assert list(house_docs.tests_named(tmp_path)) == [
        "README.md: tests/test_x.py::test_the: no such test",
        "README.md: tests/y.py::test_z: no such test",
    ]


def test_an_unknown_command_in_a_page_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, "Makefile", "demo:\n\tluciole demo\n")
    plant(
        tmp_path,
        "README.md",
        "```\nmake demo\nmake dream\n$ luciole up app:app\nluciole fly\n```\n`make sense`\n",
    )
    assert list(house_docs.make_targets(tmp_path)) == [
        "README.md: make dream: no such target",
        "README.md: make sense: no such target",
    ]
    assert list(house_docs.luciole_commands(tmp_path, {"up"}.__contains__)) == [
        "README.md: luciole fly: no such command"
    ]


def test_an_unguarded_invariant_is_seen(tmp_path: Path) -> None:
    """Tags are put together here, so that this file guards nothing by itself."""
    mark = "# I"
    plant(tmp_path, "src/luciole/engine/x.py", f"{mark}1: why\n{mark}2, I3: why\n")
    plant(tmp_path, "src/luciole/store/x.sql", "-- I" + "4: why\n")
    plant(tmp_path, "tests/test_x.py", f"{mark}1, I9: guard\n")
    plant(tmp_path, "src/luciole/testing/contract.py", f"{mark}2: guard\n")
    assert list(house_docs.invariants(tmp_path, frozenset({"I1", "I2", "I4", "I9"}))) == [
        "I9: no code is tagged with it",
        "I4: no test is tagged with it",
    ]


@pytest.mark.parametrize(
    ("name", "text", "seen"),
    [
        ("src/luciole/engine/x.py", '"""Doc."""\n\n\ndef f() -> int:\n    return 1\n', "D103"),
        ("src/luciole/engine/x.py", '"""Doc."""\n\nimport time\n\nNOW = time.time()\n', "TID251"),
        ("src/luciole/engine/x.py", '"""Doc."""\n\nfrom . import y\n\nprint(y)\n', "TID252"),
    ],
)
def test_the_lint_rules_are_in_force(tmp_path: Path, name: str, text: str, seen: str) -> None:
    plant(tmp_path, name, text)
    command = (sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise")
    done = subprocess.run(
        [*command, f"--config={ROOT / 'pyproject.toml'}", "."],
        cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert seen in done.stdout


LAYERS = [
    ("model", "from luciole.engine import x", "luciole.model is not allowed to import luciole.engine"),
    ("gateway", "from luciole.engine import x", "luciole.gateway is not allowed to import luciole.engine"),
    ("executor", "from luciole.store import x", "luciole.executor is not allowed to import luciole.store"),
    ("wire", "from luciole.runtime import x", "luciole.wire is not allowed to import luciole.runtime"),
    ("engine", "from luciole.store import memory", "luciole.engine.y -> luciole.store.memory"),
    ("service", "from luciole.store.sql import x", "luciole.service.y -> luciole.store.sql.x"),
    ("cli", "from luciole.store.sql import x", "luciole.cli.y -> luciole.store.sql.x"),
    ("novelty", "x = 1", "every child of every container"),
]


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tree, check=False, capture_output=True, text=True, env={"PYTHONPATH": str(tree)},
    )  # fmt: skip


@pytest.mark.parametrize(("package", "text", "seen"), LAYERS)
def test_the_import_layers_are_in_force(tmp_path: Path, package: str, text: str, seen: str) -> None:
    plant(tmp_path, "pyproject.toml", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name in ("", "model/", "runtime/", "wire/", "store/", "store/sql/", "engine/", "gateway/", "executor/"):
        plant(tmp_path, f"luciole/{name}__init__.py", "")
        plant(tmp_path, f"luciole/{name}x.py", "")
    (tmp_path / "luciole/x.py").unlink()
    plant(tmp_path, "luciole/store/memory.py", "")
    plant(tmp_path, "luciole/wiring.py", "from luciole.store import memory")
    assert lint_imports(tmp_path).returncode == 0
    plant(tmp_path, f"luciole/{package}/__init__.py", "")
    plant(tmp_path, f"luciole/{package}/y.py", text)
    assert seen in lint_imports(tmp_path).stdout
