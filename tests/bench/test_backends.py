"""Backends: found or refused with a reason, and never a password in what is shown."""

from pathlib import Path

import msgspec
import pytest

from luciole.bench.backends import (
    Place,
    PostgresBackend,
    SqliteBackend,
    connect_postgres,
    hide_passwords,
    make_backend,
    sqlite_path,
)
from luciole.bench.verdict import BackendUnavailable, Usage

SECRET = "hunter2"


def test_passwords_are_hidden_wherever_an_address_stands() -> None:
    text = f"run --dsn postgresql://me:{SECRET}@host/db failed: postgresql://:{SECRET}@host"
    assert hide_passwords(text) == (
        "run --dsn postgresql://me:<password>@host/db failed: postgresql://:<password>@host"
    )


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@host/db",
        f"postgresql://me:x@{SECRET}/y@host/db",
        f"postgresql://host/db?user=me&password={SECRET}&sslmode=require",
        f"postgresql://me@host/db?sslpassword={SECRET}",
        f"postgresql://me:%40{SECRET}%2F@host/db",
        f"postgresql://host/db?user=me&password=%26{SECRET}%23",
        f"postgresql://me:a#{SECRET}@host/db",
        f"host=localhost password='a {SECRET}' dbname=db",
    ],
)
def test_no_way_to_write_a_password_shows_it(dsn: str) -> None:
    assert SECRET not in hide_passwords(f"luciole bench run burst --dsn {dsn} --backend postgres")


@pytest.mark.parametrize(
    ("name", "dsn", "settings", "said"),
    [
        ("redis", None, {}, "choose sqlite or postgres"),
        ("sqlite", "sqlite:///x.db", {}, "files of the bench's own"),
        ("postgres", f"mysql://me:{SECRET}@host/db", {}, "no address of PostgreSQL"),
        ("postgres", "postgresql://host/db", {"fsync": "off"}, "leave out --set or --dsn"),
    ],
)
def test_a_backend_that_can_not_be_is_refused(name: str, dsn: str | None, settings: dict[str, str], said: str) -> None:
    with pytest.raises(Usage, match=said) as caught:
        make_backend(name, dsn=dsn, programs="wheel", settings=settings, folder=None)
    assert SECRET not in str(caught.value)


def test_a_password_with_a_space_in_it_is_hidden_where_an_address_stands_alone() -> None:
    assert hide_passwords(f"postgresql://me:a {SECRET}@host/db") == "postgresql://me:<password>@host/db"
    assert hide_passwords("postgresql://host/db of a@b") == "postgresql://host/db of a@b"


@pytest.mark.parametrize("sign", ["#", "?", "/", "[", " "])
async def test_an_address_that_its_password_breaks_shows_no_piece_of_it(sign: str) -> None:
    dsn = f"postgresql://me:{SECRET}{sign}tail@127.0.0.1:1/db"
    with pytest.raises(BackendUnavailable) as caught:
        await connect_postgres(Place(dsn=dsn))
    assert SECRET not in str(caught.value)
    assert "tail" not in str(caught.value)


async def test_an_unreachable_database_is_unavailable_and_its_password_unseen() -> None:
    backend = PostgresBackend(dsn=f"postgresql://me:{SECRET}@127.0.0.1:1/db")
    with backend, pytest.raises(BackendUnavailable) as caught:
        await backend.described()
    assert SECRET not in str(caught.value)


def count(folder: Path) -> int:
    return len(list(folder.iterdir()))


async def test_the_files_of_sqlite_are_gone_afterwards(tmp_path: Path) -> None:
    with SqliteBackend(tmp_path) as backend:
        first, second = await backend.fresh(), await backend.fresh()
        assert first.dsn != second.dsn
        assert count(backend.folder) == 2
        assert await backend.remove(first) == 0
        assert count(backend.folder) == 1
    assert count(tmp_path) == 0


async def test_a_missing_folder_makes_sqlite_unavailable(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="No such file"), SqliteBackend(tmp_path / "missing"):
        pytest.fail("it started")


def test_a_place_travels_as_json() -> None:
    place = Place(dsn="sqlite:////x", schema=None)
    assert msgspec.json.decode(msgspec.json.encode(place), type=Place) == place


async def test_what_commits_to_sqlite_survive_is_chosen_and_recorded(tmp_path: Path) -> None:
    settings = {"synchronous": "'normal'"}
    backend = make_backend("sqlite", dsn=None, programs="wheel", settings=settings, folder=tmp_path)
    with backend:
        place = await backend.fresh()
        described = await backend.described()
    assert (place.synchronous, place.dsn.partition("?")[2]) == ("normal", "durability=normal")
    assert sqlite_path(place.dsn).name == "bench.db"
    assert described["settings"] == {"synchronous": "normal"}
