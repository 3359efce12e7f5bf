"""This tree keeps the house rules, and each rule can see what it forbids."""

from pathlib import Path

import pytest

from tests import house

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("rule", house.RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_house_rules(rule: house.Rule) -> None:
    assert list(rule(ROOT)) == []


def plant(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return root


def test_a_long_file_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, "src/luciole/long.py", "x = 1\n" * 601)
    assert "the file has 601 lines" in "".join(house.sizes(tmp_path))
