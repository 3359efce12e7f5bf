"""The standing pages say what was measured for them."""

from scripts.standing_pages import LOSES, batch_cells, durability_cells, pages


def test_each_page_is_what_its_figures_say() -> None:
    found = pages()
    assert [path.name for path in found] == ["batch-size.md", "durability.md"]
    for path, text in found.items():
        assert path.read_text(encoding="utf-8") == text


def test_every_size_connection_and_setting_is_measured() -> None:
    sizes = {tuple(cell.name.split(" x ")) for cell in batch_cells() if " x " in cell.name}
    assert sizes == {(str(n), str(c)) for n in (50, 100, 200, 500, 1_000, 2_000) for c in (1, 2, 4)}
    assert [cell.name for cell in durability_cells()] == list(LOSES)
