"""How much a step executes: a count that does not depend on how busy the machine is.

`opcodes` counts the instructions of Python's own machine in this process; it is exact and portable, and blind to what
happens inside C. `perf` and `valgrind` count the processor's instructions of a process that does the step n and 2n
times; the difference is the step alone. A virtual machine often hides the counters that `perf` needs; valgrind counts
anywhere, fifty times slower.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Literal

from luciole.bench.micro.steps import Micro, Step
from luciole.bench.verdict import InvalidRun, Usage

Counter = Literal["opcodes", "perf", "valgrind", "none"]
COUNTERS: tuple[Counter, ...] = ("opcodes", "perf", "valgrind", "none")

#: The unit that each counter counts in, also the end of the figures' names.
COUNTED: Mapping[Counter, str] = {"opcodes": "opcodes", "perf": "instructions", "valgrind": "instructions"}

_TIMEOUT_S = 600

#: A tool of Python's monitoring that debuggers, coverage and profilers leave alone.
_TOOL = 4


def available(counter: Counter) -> str | None:
    """Return why a counter can't be used here; None: it can."""
    if counter == "perf":
        if shutil.which("perf") is None:
            return "perf is not installed"
        done = _ran(["perf", "stat", "-x,", "-e", "instructions:u", "--", "true"], {})
        return None if perf_count(done) is not None else "this machine hides the processor's counters from perf"
    if counter == "valgrind" and shutil.which("valgrind") is None:
        return "valgrind is not installed"
    return None


def count_opcodes(step: Step) -> float:
    """Return how many instructions of Python's machine one of a step's repetitions executes."""
    step()  # Caches are warm.
    done, count = _monitored(step) if hasattr(sys, "monitoring") else _traced(step)
    return count / done


def _traced(step: Step) -> tuple[int, int]:
    """Do a step and count as Python 3.11 can: by a trace function; later ones do not always hear it."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401 - as the interpreter has it
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        done = step()
    finally:
        sys.settrace(before)
    return done, count


def _monitored(step: Step) -> tuple[int, int]:
    """Do a step and count as Python 3.12 and later can: by the events of its monitoring, in this thread."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined] # Python 3.11 is what types are checked for
    count, here = 0, get_ident()

    def instruction(code: CodeType, offset: int) -> None:
        nonlocal count
        del code, offset
        count += get_ident() == here

    event = monitoring.events.INSTRUCTION
    monitoring.use_tool_id(_TOOL, "luciole bench")
    try:
        monitoring.register_callback(_TOOL, event, instruction)
        monitoring.set_events(_TOOL, event)
        done = step()
    finally:
        monitoring.set_events(_TOOL, 0)
        monitoring.register_callback(_TOOL, event, None)
        monitoring.free_tool_id(_TOOL)
    return done, count


def count_instructions(micro: Micro, counter: Counter) -> float:
    """Return how many instructions of the processor one of a step's repetitions executes.

    Raises:
        InvalidRun: the counter failed.
    """
    rounds = _rounds(micro.prepare())
    once, twice = (count_process(counter, micro.name, count) for count in (rounds, 2 * rounds))
    done = micro.prepare()() * rounds
    return (twice - once) / done


def checked(counter: Counter) -> None:
    """Refuse a counter that can't be had here.

    Raises:
        Usage: it can't; the message says why.
    """
    reason = available(counter)
    if reason:
        raise Usage(f"--counter {counter}: {reason}; opcodes are counted anywhere")


def _rounds(step: Step) -> int:
    """Return how often a step is done so that it stands out from the start of its process."""
    return max(20, 2_000 // max(1, step()))


def count_process(counter: Counter, name: str, rounds: int) -> int:
    """Return the instructions of a process that does a step so often.

    Raises:
        InvalidRun: the counter failed.
    """
    program = [sys.executable, "-m", "luciole.bench.micro.one", name, str(rounds)]
    environment = {"PYTHONHASHSEED": "0"}
    if counter == "perf":
        found = perf_count(_ran(["perf", "stat", "-x,", "-e", "instructions:u", "--", *program], environment))
    else:
        with TemporaryDirectory() as folder:
            tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={Path(folder) / 'out'}"]
            found = valgrind_count(_ran([*tool, *program], environment))
    if found is None:
        raise InvalidRun(f"{counter} counted nothing in {name}")
    return found


def _ran(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        env={**os.environ, **environment},
    )
    return done.stderr


def perf_count(said: str) -> int | None:
    """Return the count that `perf stat -x,` printed; None: the machine hides it."""
    found = re.search(r"^(\d+),[^,]*,instructions", said, re.MULTILINE)
    return int(found[1]) if found else None


def valgrind_count(said: str) -> int | None:
    """Return the count that valgrind's cachegrind printed."""
    found = re.search(r"I\s+refs:\s+([\d,]+)", said)
    return int(found[1].replace(",", "")) if found else None
