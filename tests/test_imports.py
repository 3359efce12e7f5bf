"""Each module imports alone, and who lacks an optional package is told which extra brings it."""

import re
from pathlib import Path

import pytest

from tests import imports


@pytest.mark.slow
def test_each_module_imports_alone() -> None:
    assert imports.failures(imports.modules()) == {}


@pytest.mark.slow
def test_a_missing_optional_package_is_named_with_its_extra() -> None:
    names = imports.modules()
    found = imports.failures(names, without=imports.OPTIONAL)
    unclear = {
        name: text
        for name, text in found.items()
        if not re.search(rf"^MissingExtra: .*luciole\[({'|'.join(imports.OPTIONAL.values())})\]", text)
    }
    assert unclear == {}
    assert "luciole" not in found


def test_modules_that_need_each_other_are_seen(tmp_path: Path) -> None:
    package = tmp_path / "ring"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from ring.second import y\nx = 1\n")
    (package / "second.py").write_text("from ring.first import x\ny = 1\n")
    found = imports.failures(imports.modules(package), path=str(tmp_path))
    assert found.keys() == {"ring.first", "ring.second"}


def test_a_module_that_ends_its_process_is_seen(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import os\nos._exit(3)\n")
    assert "the process died" in imports.failures(["ends"], path=str(tmp_path))["ends"]


def test_a_package_that_is_made_to_be_missing_is_missing() -> None:
    assert "psutil" in imports.failures(["psutil"], without=["psutil"])["psutil"]
