"""Migrations: numbered files of a dialect, applied in order, once each, under a lock.

An applied file is never changed: its checksum is recorded and compared. A database that knows more files than this
version is newer and is left alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from luciole import limits
from luciole.errors import InvalidValue, SchemaMismatch, StoreCorrupt
from luciole.model.job import job_spec_from_row
from luciole.store.sql.queries import Statement, commands_of
from luciole.store.sql.script import Query, Row, Script

#: The id segments that initialisation makes.
SEGMENTS = ("id", "job", "trigger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered file."""

    number: int
    name: str  #: the file's name without its suffix, "0001_first"
    checksum: str
    statement: Statement


def load_migrations(package: str) -> tuple[Migration, ...]:
    """Return the migrations of a dialect's package in order; their numbers are 1, 2, 3 and so on."""
    found = []
    folder = files(package).joinpath("migrations")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".sql"):
            text = entry.read_text(encoding="utf-8")
            name = entry.name.removesuffix(".sql")
            found.append(
                Migration(
                    number=int(name.split("_")[0]),
                    name=name,
                    checksum=sha256(text.encode()).hexdigest(),
                    statement=Statement(name=name, commands=commands_of(text)),
                )
            )
    assert [step.number for step in found] == list(range(1, len(found) + 1)), f"{package}: numbers are not 1, 2, 3 …"
    return tuple(found)


def pending(applied: Sequence[Row], known: Sequence[Migration]) -> tuple[Migration, ...]:
    """Return the migrations still to apply.

    Args:
        applied: (number, name, checksum) of what the database has, ordered.
        known: what this version has.

    Raises:
        SchemaMismatch: the database is newer than this version.
        StoreCorrupt: an applied migration is not the one that this version has.
    """
    if len(applied) > len(known):
        newest = applied[-1]
        raise SchemaMismatch(
            f"schema: the database is at {newest[1]}, newer than this version, which knows {len(known)} migrations; "
            "upgrade Luciole here"
        )
    for row, step in zip(applied, known, strict=False):
        if tuple(row) != (step.number, step.name, step.checksum):
            raise StoreCorrupt(
                f"schema: migration {row[0]} was applied as {row[1]} ({row[2][:12]}), but here it is {step.name} "
                f"({step.checksum[:12]}); an applied migration never changes, so one of the two is damaged"
            )
    return tuple(known[len(applied) :])


def migrate(known: Sequence[Migration], shards: int | None) -> Script[int]:
    """Apply what is missing and make the first rows; return how many migrations ran.

    Raises:
        SchemaMismatch: the database is newer.
        StoreCorrupt: a changed migration, or another shard count.
    """
    yield Query("lock_schema")
    yield Query("create_migration_tables")
    applied = yield Query("applied_migrations")
    steps = pending(applied, known)
    for step in steps:
        yield Query(step.name)
        yield Query("record_migration", {"number": step.number, "name": step.name, "checksum": step.checksum})
    if steps:
        yield from _route_jobs()
    if not applied:
        yield from _initialise(limits.SHARDS_DEFAULT if shards is None else shards)
    elif shards is not None:
        check_shards(shards, (yield from recorded_shards()))
    return len(steps)


def _route_jobs() -> Script[None]:
    """Note what job versions ask of an executor that were stored without it."""
    after = 0
    while rows := (yield Query("unrouted_jobs", {"after": after, "limit": limits.PAGE_MAX})):
        after = rows[-1][0]
        known = []
        for job_id, namespace, handler, options in rows:
            try:
                spec = job_spec_from_row(namespace, handler, b"", "", options)
            except InvalidValue:
                continue  # I7: one that this version can't read waits for one that can.
            known.append((job_id, spec.route_id()))
        yield Query("route_jobs", rows=known)


def check_schema(known: Sequence[Migration], shards: int | None) -> Script[int]:
    """Return the recorded number of shards, if the schema is exactly the one that this version uses.

    Raises:
        SchemaMismatch: it is older or newer.
        StoreCorrupt: a changed migration, another shard count, or missing lease rows.
    """
    exists = yield Query("schema_exists")
    applied: Sequence[Row] = (yield Query("applied_migrations")) if exists[0][0] else ()
    missing = pending(applied, known)
    if missing:
        raise SchemaMismatch(f"schema: {missing[0].name} has not been applied; run `luciole migrate`")
    recorded = yield from recorded_shards()
    check_shards(shards, recorded)
    counted = yield Query("count_leases")
    check_lease_rows(counted[0][0], recorded)
    return recorded


def check_shards(wanted: int | None, recorded: int) -> None:
    """Raise `StoreCorrupt` when a number of shards is asked for that is not the recorded one."""
    if wanted is not None and wanted != recorded:
        raise StoreCorrupt(
            f"shards: this store was made with {recorded}, not {wanted}; the number can't change, so ask for "
            f"{recorded}, or for none"
        )


def check_lease_rows(found: int, shards: int) -> None:
    """Raise `StoreCorrupt` unless there is a lease row for each shard."""
    if found != shards:
        raise StoreCorrupt(
            f"{shards - found} of {shards} lease rows are missing (a partial restore?): run `luciole migrate --repair`"
        )


def recorded_shards() -> Script[int]:
    """Return the number of shards that the database was made with.

    Raises:
        StoreCorrupt: it is missing.
    """
    rows = yield Query("read_meta", {"key": "shards"})
    if not rows:
        raise StoreCorrupt("meta: the number of shards is missing; restore the whole database, or make a new one")
    return int(rows[0][0])


def _initialise(shards: int) -> Script[None]:
    if not 1 <= shards <= limits.SHARDS_MAX:
        raise InvalidValue(f"shards: {shards} is outside 1 to {limits.SHARDS_MAX}")
    yield Query("write_meta", {"key": "shards", "value": str(shards)})
    yield Query("insert_leases", rows=[(shard,) for shard in range(shards)])
    for name in SEGMENTS:
        yield Query("insert_id_segment", {"name": name})
