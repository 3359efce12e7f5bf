"""A bench that is stopped from outside ends everything that it began, with the code for a run that says nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from luciole.bench.leash import heeding_interrupts
from luciole.bench.result import read_result, write_result
from luciole.limits import SECOND_US
from luciole.runtime.clock import SystemClock
from luciole.testing.servers import PostgresServer
from tests.bench.deciding.some_results import a_result

PATIENCE_S = 60

#: So many repeats that the run would go on for minutes if nobody stopped it.
LONG = ("--size", "smoke", "--ceiling", "none", "--repeats", "100")

BENCH = (sys.executable, "-m", "luciole", "bench")
BURST = ("run", "burst", *LONG)


class Bench:
    """A bench that runs in a process of its own, with a folder for temporary files of its own."""

    def __init__(
        self, folder: Path, *arguments: str, program: tuple[str, ...] = (), command: tuple[str, ...] = BURST
    ) -> None:
        self.temporary, self.out = folder / "tmp", folder / "out"
        self.temporary.mkdir()
        out = ("--out", str(self.out)) if command is BURST else ()
        self.child = subprocess.Popen(
            [*program, *BENCH, *command, *out, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            start_new_session=True,
        )

    def wait_for_schedulers(self) -> list[psutil.Process]:
        """Wait until the coordinator of a repeat has a scheduler; return every process of the bench."""
        clock = SystemClock()
        end_us = clock.monotonic_us() + PATIENCE_S * SECOND_US
        while clock.monotonic_us() < end_us:
            found = psutil.Process(self.child.pid).children(recursive=True)
            if any("luciole.bench.burst.scheduler" in _command(one) for one in found):
                return found
            assert self.child.poll() is None, "it ended by itself"
        raise AssertionError("no scheduler was started")

    def wait_for_files(self) -> list[psutil.Process]:
        """Wait until it has begun: files in a folder of its own, or a child; return every process of the bench."""
        clock = SystemClock()
        end_us = clock.monotonic_us() + PATIENCE_S * SECOND_US
        while clock.monotonic_us() < end_us:
            found = psutil.Process(self.child.pid).children(recursive=True)
            if any(self.temporary.glob("luciole-*/*")) or (self.left() and found):
                return found
            assert self.child.poll() is None, "it ended by itself"
        raise AssertionError("nothing was begun")

    def end(self) -> list[str]:
        """Wait for its end; return what it said."""
        said, _ = self.child.communicate(timeout=PATIENCE_S)
        return said.splitlines()

    def left(self) -> list[str]:
        """Return what lies in its folder for temporary files, but for the lock that all benches share."""
        return sorted(path.name for path in self.temporary.iterdir() if path.name != "luciole-bench.lock")


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    return not alive


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Start benches that end with the test at the latest."""
    benches: list[Bench] = []

    def start(*arguments: str, program: tuple[str, ...] = (), command: tuple[str, ...] = BURST) -> Bench:
        benches.append(Bench(tmp_path, *arguments, program=program, command=command))
        return benches[-1]

    yield start
    for bench in benches:
        bench.child.kill()
        bench.child.communicate()


@pytest.fixture
def started(launch: Callable[..., Bench]) -> Bench:
    return launch()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_bench_with_all_its_processes_and_files(started: Bench, number: signal.Signals) -> None:
    processes = started.wait_for_schedulers()
    started.child.send_signal(number)
    said = started.end()
    assert said[-1] == "bench: INVALID interrupted"
    assert started.child.returncode == 6
    assert read_result(started.out).verdict.reason == "interrupted"
    assert _gone(processes)
    assert started.left() == []


@pytest.mark.slow
def test_sigterm_ends_a_bench_that_a_script_runs_in_the_background(launch: Callable[..., Bench]) -> None:
    bench = launch(program=("/bin/sh", "-c", 'trap "" INT; exec "$@"', "script"))  # As `command &` of a script does.
    processes = bench.wait_for_schedulers()
    bench.child.terminate()
    assert bench.end()[-1] == "bench: INVALID interrupted"
    assert _gone(processes)
    assert bench.left() == []


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_reaches_the_bench_alone_which_ends_the_others(started: Bench) -> None:
    processes = started.wait_for_schedulers()
    os.killpg(started.child.pid, signal.SIGINT)
    assert started.end()[-1] == "bench: INVALID interrupted"
    assert _gone(processes)
    assert started.left() == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere children end with their standard input")
def test_no_process_outlives_a_bench_that_was_killed(started: Bench) -> None:
    processes = started.wait_for_schedulers()
    started.child.kill()
    assert _gone(processes)


@pytest.mark.slow
def test_a_signal_leaves_no_schema_in_somebody_elses_database(
    launch: Callable[..., Bench], postgres_wheel: PostgresServer
) -> None:
    dsn = postgres_wheel.create_database()
    bench = launch("--backend", "postgres", "--dsn", dsn)
    processes = bench.wait_for_schedulers()
    bench.child.terminate()
    assert bench.end()[-1] == "bench: INVALID interrupted"
    schemas = postgres_wheel.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'luciole%'", dsn)
    assert _gone(processes)
    assert schemas.strip() == "0"


@pytest.mark.slow
def test_a_signal_stops_the_server_that_the_bench_had_started(launch: Callable[..., Bench], tmp_path: Path) -> None:
    bench = launch("--backend", "postgres")
    processes = bench.wait_for_schedulers()
    assert any("postgres" in _command(one) for one in psutil.process_iter() if str(tmp_path) in _command(one))
    bench.child.terminate()
    assert bench.end()[-1] == "bench: INVALID interrupted"
    assert _gone(processes)
    assert [_command(one) for one in psutil.process_iter() if str(tmp_path) in _command(one)] == []
    assert bench.left() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "words",
    [
        "probe --size full --out OUT",
        "capacity steady --size smoke --out OUT",
        "selftest",
        "calibrate micro --options=--size=full --perf OUT",
        "run register --size full --out OUT burst --size full --out OUT",
        "repro STORED --run",
    ],
    ids=lambda words: words.split()[0],
)
def test_whatever_the_bench_is_at_a_signal_ends_it_in_order(
    launch: Callable[..., Bench], tmp_path: Path, words: str, number: signal.Signals
) -> None:
    out, stored = str(tmp_path / "out"), tmp_path / "stored"
    again = a_result("register")
    again.command = ["luciole", "bench", "run", "register", "--size", "full", "--out", out]
    write_result(again, stored)
    command = tuple(word.replace("OUT", out).replace("STORED", str(stored)) for word in words.split())
    bench = launch(command=command)
    processes = bench.wait_for_files()
    bench.child.send_signal(number)
    said = bench.end()
    assert said[-1] == "bench: INVALID interrupted"
    assert bench.child.returncode == 6
    assert _gone(processes)
    assert bench.left() == []


def test_an_interrupt_whose_exception_was_lost_is_heeded_at_the_next_question() -> None:
    with heeding_interrupts() as heed:
        heed()
        with suppress(KeyboardInterrupt):  # As Python's hooks around a fork do.
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            heed()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
