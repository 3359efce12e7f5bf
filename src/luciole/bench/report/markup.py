"""Markup as text, so that nothing which a result says is ever read as markup."""

import html

from luciole.bench.backends import hide_passwords

#: What a cell shows that has nothing to show.
NOTHING = "-"

#: Elements that have no end.
_VOID = {"meta", "br", "rect", "line", "circle", "path"}


class Markup(str):
    """Text that is markup already; all other text is escaped."""

    __slots__ = ()


def text(value: str) -> Markup:
    """Return plain text as markup, passwords of addresses hidden."""
    return value if isinstance(value, Markup) else Markup(html.escape(hide_passwords(value), quote=True))


def join(*parts: "str | None") -> Markup:
    """Return parts one after the other; None is nothing."""
    return Markup("".join(text(part) for part in parts if part is not None))


def tag(name: str, /, *children: "str | None", **attributes: "str | float | None") -> Markup:
    """Return an element.

    Args:
        name: of the element.
        children: what is in it; plain text is escaped, None is left out.
        attributes: `class_` stands for `class`, `view_box` for `viewBox`, other underscores for hyphens; None leaves
            one out; numbers are written short.
    """
    written = "".join(
        f' {_NAMES.get(key, key.rstrip("_").replace("_", "-"))}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


_NAMES = {"view_box": "viewBox", "preserve_aspect_ratio": "preserveAspectRatio"}


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return text(value)
    return f"{value:.2f}".rstrip("0").rstrip(".")


def table(
    head: "list[str]", rows: "list[list[str]]", *, numbers: int | None = None, class_: str | None = None
) -> Markup:
    """Return a table.

    Args:
        head: of the columns.
        rows: their cells; plain text is escaped.
        numbers: how many columns after the first hold numbers; None: all.
        class_: of the element.
    """
    last = len(head) if numbers is None else numbers + 1

    def kind(index: int) -> str | None:
        return "number" if 0 < index < last else None

    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", *(tag("th", cell, scope="col", class_=kind(n)) for n, cell in enumerate(head)))),
            tag(
                "tbody",
                *(
                    tag(
                        "tr",
                        *(
                            tag("td", cell, class_=kind(n)) if n else tag("th", cell, scope="row")
                            for n, cell in enumerate(row)
                        ),
                    )
                    for row in rows
                ),
            ),
            class_=class_,
        ),
        class_="scroll",
    )
