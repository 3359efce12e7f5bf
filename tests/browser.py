"""A headless Chromium for tests that look at a page as a person would."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

_PROGRAMS = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome")
_HOW = "apt-get install chromium"
_WIDTH = 1100

#: Only in the copy that a test looks at: tells where each chart is.
_BOXES = """<script>
document.querySelectorAll("details").forEach(one => one.open = true);
const boxes = [...document.querySelectorAll("svg[data-chart]")].map(svg => {
  const box = svg.getBoundingClientRect();
  return [svg.dataset.chart, box.left, box.top + scrollY, box.width, box.height];
});
const told = document.createElement("script");
told.type = "application/json"; told.id = "boxes";
told.textContent = JSON.stringify({boxes, height: document.documentElement.scrollHeight,
  wide: document.documentElement.scrollWidth > innerWidth});
document.body.append(told);
</script></body>"""


class Chart(NamedTuple):
    """A chart as a browser drew it."""

    name: str
    width: float
    height: float
    colours: int  #: how many there are in its pixels
    drawn: float  #: share of its pixels that are not its ground


class Look(NamedTuple):
    """What a browser made of a page."""

    charts: list[Chart]
    too_wide: bool  #: it must be scrolled sideways


def find_browser() -> str:
    """Return the browser; skip the test that needs it, or fail it where nothing may be missing."""
    found = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        message = f"no Chromium here: {_HOW}"
        if os.environ.get("STORES") == "all":
            pytest.fail(message)
        pytest.skip(message)
    return found


def look_at(page: Path, folder: Path, *, dark: bool = False) -> Look:
    """Open a page and look at each of its charts.

    Args:
        page: the file.
        folder: for the copy that tells where its charts are, for the profile of the browser and for the screenshot.
        dark: as a person sees it who prefers dark colours.
    """
    copy = folder / "copy.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", _BOXES), encoding="utf-8")
    dom = _browse(copy, folder, "--dump-dom", height=1_000, dark=dark)
    told = re.search(r'<script type="application/json" id="boxes">(.*?)</script>', dom, re.DOTALL)
    assert told, dom[:2_000]
    found = json.loads(told[1])
    picture = folder / "page.png"
    _browse(copy, folder, f"--screenshot={picture}", height=int(found["height"]), dark=dark)
    with Image.open(picture) as image:
        charts = [_chart(image.convert("RGB"), *box) for box in found["boxes"]]
    return Look(charts, found["wide"])


def _chart(image: Image.Image, name: str, left: float, top: float, width: float, height: float) -> Chart:
    # Two pixels less on each side: what stands beside it may shine in.
    part = image.crop((round(left) + 2, round(top) + 2, round(left + width) - 2, round(top + height) - 2))
    counted = part.getcolors(maxcolors=part.width * part.height) or []
    whole = sum(count for count, _ in counted) or 1
    ground = max((count for count, _ in counted), default=0)
    return Chart(name, width, height, len(counted), 1 - ground / whole)


def _browse(page: Path, folder: Path, *arguments: str, height: int, dark: bool) -> str:
    done = subprocess.run(
        [
            find_browser(),
            "--headless",
            "--no-sandbox",  # As root, as CI is.
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND",  # Whatever it asked a network for, it would not get.
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={_WIDTH},{height}",
            *(["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []),
            *arguments,
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout
