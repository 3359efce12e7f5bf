"""The commands, as people and programs use them."""

import io
import json
import sys
from collections.abc import Callable
from itertools import count
from typing import TypeAlias

import pytest

from luciole.app import App
from luciole.cli.run import COMMANDS, run
from luciole.client.job import Job
from luciole.errors import StoreUnavailable
from luciole.model.trigger import cron, every

_NAMES = count()

#: Runs a command line and returns what it printed: on stderr when it was to fail.
Luciole: TypeAlias = Callable[..., str]


class Shop:
    """An app with a schedule and an execution, on a store of its own."""

    def __init__(self) -> None:
        self.dsn = f"memory://cli-{next(_NAMES)}"
        self.app = App(self.dsn, name="shop")

        @self.app.job
        def report(region: str) -> int:
            return len(region)

        self.report: Job[[str], int, int] = report
        self.app.schedule("nightly", report.bind("eu"), cron("30 2 * * *", tz="Europe/Berlin"))
        self.app.schedule("often", report.bind("us"), every("10s"), overlap="allow")
        with self.app:
            self.app.declare_sync()
            self.execution = report.options(delay="1h", key="k-1").enqueue_sync("de").id


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop()
    monkeypatch.setenv("LUCIOLE_DSN", made.dsn)
    monkeypatch.setenv("COLUMNS", "200")
    return made


@pytest.fixture
def luciole(shop: Shop, capsys: pytest.CaptureFixture[str]) -> Luciole:
    del shop

    def call(*arguments: str, code: int = 0) -> str:
        found = run(arguments)
        captured = capsys.readouterr()
        assert found == code, captured
        return captured.out if code == 0 else captured.err

    return call


def test_the_overview_names_each_command(luciole: Luciole) -> None:
    overview = luciole("--help")
    assert all(f"  {name} " in overview for name in COMMANDS)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "bench"])
def test_each_command_explains_itself(luciole: Luciole, name: str) -> None:
    assert luciole(name, "--help").startswith(f"Usage: luciole {name}")


def test_a_near_miss_is_answered_with_what_was_meant(luciole: Luciole) -> None:
    assert "did you mean 'schedules'?" in luciole("schedule", code=2)


def test_schedules_are_listed_for_people_and_programs(luciole: Luciole) -> None:
    table = luciole("schedules", "list")
    assert "nightly" in table
    assert "30 2 * * * Europe/Berlin" in table
    listed = json.loads(luciole("schedules", "list", "night", "--json"))
    assert [(row["name"], row["handler"], row["payload"]) for row in listed] == [
        ("nightly", "shop.report", {"region": "eu"})
    ]
    assert "and more" in luciole("schedules", "list", "--limit", "1")


def test_a_schedule_is_paused_resumed_edited_and_deleted(luciole: Luciole, monkeypatch: pytest.MonkeyPatch) -> None:
    assert luciole("schedules", "pause", "often", "nightly", "--reason", "too loud").splitlines() == [
        "often: paused",
        "nightly: paused",
    ]
    assert "too loud" in luciole("schedules", "show", "often")
    assert json.loads(luciole("schedules", "list", "--state", "active", "--json")) == []
    assert "often: active, next " in luciole("schedules", "resume", "often")
    luciole("schedules", "edit", "often", "--every", "1h", "--overlap", "forbid", "--misfire", "skip")
    edited = json.loads(luciole("schedules", "show", "often", "--json"))
    assert edited["trigger"]["interval_us"] == 3_600_000_000
    assert (edited["policy"]["overlap"], edited["policy"]["misfire"]) == ("forbid", "skip")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO())  # Nobody answers.
        assert "pass --yes" in luciole("schedules", "delete", "often", code=2)
    luciole("schedules", "delete", "often", "--yes")
    assert "there is none" in luciole("schedules", "show", "often", code=2)


def test_a_schedule_is_triggered_with_other_arguments(luciole: Luciole) -> None:
    done = json.loads(luciole("schedules", "trigger", "often", "--args", '{"region": "fr"}', "--json"))
    shown = json.loads(luciole("executions", "show", done["execution"], "--json"))
    assert (shown["origin"], shown["payload"]) == ("manual", {"region": "fr"})
    (listed,) = json.loads(luciole("executions", "list", "--schedule", "often", "--json"))
    assert listed["id"] == done["execution"]
    assert "JSON object" in luciole("schedules", "trigger", "often", "--args", "[1]", code=2)


def test_overlap_that_forbids_a_run_by_hand_is_a_conflict(luciole: Luciole) -> None:
    luciole("schedules", "trigger", "nightly")
    assert "'forbid'" in luciole("schedules", "trigger", "nightly", code=3)


def test_executions_are_listed_shown_and_cancelled(luciole: Luciole, shop: Shop) -> None:
    assert shop.execution in luciole("executions", "list", "--state", "open")
    assert "k-1" in luciole("executions", "show", shop.execution)
    assert luciole("executions", "cancel", shop.execution).strip().endswith(": cancelled")  # It was not due yet.
    due = json.loads(luciole("schedules", "trigger", "often", "--json"))["execution"]
    assert "its end was asked for" in luciole("executions", "cancel", due)
    assert "has not ended" in luciole("executions", "retry", due, code=3)
    assert json.loads(luciole("executions", "list", "--state", "troubled", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "code", "seen"),
    [
        (("executions", "show", "nonsense"), 2, "execution id"),
        (("executions", "show", "1-0-0-_1"), 2, "there is none"),
        (("executions", "list", "--schedule", "nope"), 2, "nope"),
        (("schedules", "show", "nigtly"), 2, "near: nightly"),
        (("schedules", "edit", "often"), 2, "nothing to change"),
        (("explain",), 2, "name a schedule"),
        (("executions", "show"), 2, "see `luciole executions show --help`"),
        (("schedules", "list", "--limit", "x"), 2, "'--limit'"),
        (("schedules", "lst"), 2, "No such command 'lst'"),
        (("schedules", "list", "--jsn"), 2, "--json"),
        (("explain", "--cron", "0 0 30 2 *"), 2, "never"),
        (("explain", "--cron", "0 0 * * *", "--every", "5s"), 2, "exclude each other"),
        (("explain", "--every", "5s", "--tz", "UTC"), 2, "--tz"),
        (("explain", "--at", "2026-01-01T00:00:00"), 2, "offset"),
        (("jobs", "list", "--dsn", "sqlite:////nowhere/luciole.db"), 2, "there is no store at /nowhere/luciole.db"),
        (("jobs", "list", "--dsn", "mongodb://me:secret@host/db"), 2, "no kind of store"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_knob(
    luciole: Luciole, arguments: tuple[str, ...], code: int, seen: str
) -> None:
    complaint = luciole(*arguments, code=code)
    assert seen in complaint
    assert "secret" not in complaint
    assert complaint.startswith("error: ")
    assert len(complaint.splitlines()) == 1


def test_explain_says_what_a_change_of_the_clocks_does(luciole: Luciole) -> None:
    command = ("explain", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2026-03-28T12:00:00Z", "-n", "1")
    assert "02:30 does not exist, moved to 03:00" in luciole(*command)
    (fire,) = json.loads(luciole(*command, "--json"))
    assert fire["fire"] == "2026-03-29T01:00:00Z"


def test_explain_of_a_stored_schedule_starts_at_its_cursor(luciole: Luciole) -> None:
    explained = json.loads(luciole("explain", "often", "-n", "2", "--json"))
    assert explained["fires"][0]["fire"] == explained["schedule"]["next"]
    luciole("schedules", "pause", "often")
    assert "does not fire any more: it is paused" in luciole("explain", "often")


def test_jobs_nodes_and_migrate(luciole: Luciole) -> None:
    assert "shop.report" in luciole("jobs", "list")
    assert "No node is alive" in luciole("nodes")
    cluster = json.loads(luciole("nodes", "--json"))
    assert (cluster["shards"], cluster["shards_free"], cluster["backlog"]["open"]) == (32, 32, 1)
    assert "already up to date" in luciole("migrate")


@pytest.mark.usefixtures("shop")
def test_doctor_fails_a_health_check_without_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 1
    assert "start `luciole up`" in capsys.readouterr().out
    assert run(["doctor", "--dsn", "sqlite:////nowhere/luciole.db"]) == 1
    assert "there is no store" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_know_the_program(luciole: Luciole, shell: str) -> None:
    assert "_LUCIOLE_COMPLETE" in luciole("completion", shell)


def test_passwords_are_never_printed(luciole: Luciole, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "secret" not in luciole("migrate", "--dsn", "nostore://me:secret@host/db", code=2)

    async def open_store(dsn: str) -> None:
        raise StoreUnavailable(f"{dsn} does not answer")

    monkeypatch.setattr("luciole.wiring.open_store", open_store)
    complaint = luciole("jobs", "list", "--dsn", "postgresql://me:secret@host/db", code=4)
    assert complaint == "error: postgresql://me:***@host/db does not answer\n"


def test_a_doctor_hides_passwords_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def open_store(dsn: str) -> None:
        raise StoreUnavailable(f"{dsn} does not answer")

    monkeypatch.setattr("luciole.wiring.open_store", open_store)
    assert run(["doctor", "--dsn", "postgresql://me:secret@host/db"]) == 1
    out = capsys.readouterr().out
    assert "me:***@host" in out
    assert "secret" not in out
