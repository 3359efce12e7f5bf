"""Profiles: folded stacks become flames, and a real process is seen."""

import sys
from pathlib import Path

import pytest

from luciole.bench.attribution import profiling
from luciole.bench.attribution.profiling import Profiler, flame_of
from luciole.bench.processes import Process

RAW = """<module> (/x/src/luciole/a.py);tick (/x/site-packages/asyncpg/b.py:12) 7
<module> (/x/src/luciole/a.py);tick (/x/site-packages/asyncpg/b.py:12) 2
main (/usr/lib/python3.11/asyncio/runners.py) 1
no samples here
"""


def test_stacks_lose_the_folders_of_their_machine_and_are_counted() -> None:
    flame = flame_of("node", "cpu", RAW)
    assert flame.samples == 10
    assert flame.stacks == {
        "<module> (luciole/a.py);tick (asyncpg/b.py:12)": 9,
        "main (asyncio/runners.py)": 1,
    }


async def test_without_py_spy_the_profile_says_so_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "find_profiler", lambda: None)
    async with Profiler({"node": 1}, "cpu") as profiler:
        pass
    assert (profiler.flames, profiler.failed) == ([], [profiling.MISSING])


async def test_a_process_that_is_gone_is_said_to_be_unprofiled() -> None:
    async with Profiler({"node": 2**22 + 1}, "cpu") as profiler:
        pass
    assert [reason.startswith("node could not be profiled: ") for reason in profiler.failed] == [True]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a profiler needs rights that tests lack")
async def test_a_process_that_computes_is_seen_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Method: a child that answers once it has computed for a while; what it computed is in its profile."""
    (tmp_path / "busy_child.py").write_text(
        "import asyncio, hashlib\n"
        "from luciole.bench.processes import answer_lines\n"
        "def compute_much():\n"
        "    for _ in range(3_000_000):\n"
        "        hashlib.md5(b'x').digest()\n"
        "async def busy():\n"
        "    compute_much()\n"
        "    return {}\n"
        "asyncio.run(answer_lines({'busy': busy}))\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = await Process.start("busy_child")
    try:
        async with Profiler({"child": child.pid}, "cpu") as profiler:
            await child.ask("busy")
    finally:
        await child.stop()
    assert profiler.failed == []
    assert any("compute_much" in stack for stack in profiler.flames[0].stacks)
