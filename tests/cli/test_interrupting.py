"""A command that is interrupted before its own code has been imported ends in order, too."""

import signal
import subprocess
import sys

import pytest

from luciole.bench.run import INTERRUPTED
from luciole.bench.verdict import Verdict

PATIENCE_S = 60


def interrupt_at_the_import_of(module: str, *arguments: str) -> tuple[int, str, str]:
    """Start a command and interrupt it when it has imported a module; return its code and what it said."""
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "luciole", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stderr
        # Python tells of each import as soon as it has ended.
        assert any(line.split("|")[-1].strip() == module for line in child.stderr), f"{module} was never imported"
        child.send_signal(signal.SIGINT)
        said, problem = child.communicate(timeout=PATIENCE_S)
    return child.returncode, said, problem


@pytest.mark.slow
@pytest.mark.parametrize("module", ["click", "luciole.errors", "luciole.bench.verdict", "msgspec"])
def test_a_bench_that_is_interrupted_while_it_starts_ends_with_its_verdict(module: str) -> None:
    code, said, problem = interrupt_at_the_import_of(module, "bench", "run", "steady")
    assert "Traceback" not in problem
    assert said == f"bench: {Verdict.INVALID.word.upper()} {INTERRUPTED}\n"
    assert code == Verdict.INVALID


@pytest.mark.slow
@pytest.mark.parametrize("module", ["click", "luciole.errors"])
def test_any_other_command_that_is_interrupted_while_it_starts_says_nothing(module: str) -> None:
    code, said, problem = interrupt_at_the_import_of(module, "doctor", "--dsn", "memory://nowhere")
    assert "Traceback" not in problem
    assert (code, said) == (130, "")
