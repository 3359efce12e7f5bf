"""The collector of the product's own processes."""

import subprocess
import sys

_LOOK = """
import gc
from luciole.runtime.collector import calm_collector
before = gc.get_threshold()[0]
calm_collector()
loop = []
loop.append(loop)
del loop
print(gc.get_threshold()[0] > before, gc.isenabled(), gc.collect() > 0)
"""


def test_it_looks_less_often_and_still_finds_what_is_garbage() -> None:
    told = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "True", "True"]
