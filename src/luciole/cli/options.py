"""Options that commands share, and what they bring: a store, an app, a name."""

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from luciole.errors import InvalidValue, LucioleError, NotFound
from luciole.service.checking import nearest
from luciole.store.spi import Store

if TYPE_CHECKING:
    from luciole.app import App

T = TypeVar("T")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])

DSN_DEFAULT = "sqlite:///luciole.db"


dsn_option = click.option(
    "--dsn",
    envvar="LUCIOLE_DSN",
    default=DSN_DEFAULT,
    show_default=True,
    show_envvar=True,
    metavar="DSN",
    help="The store: sqlite:///path.db or postgresql://user@host/database.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
namespace_option = click.option("--namespace", default="default", show_default=True, help="The app's namespace.")


def store_options(command: CommandT) -> CommandT:
    """Give a command the options of all that read a store: `dsn` and `as_json`."""
    return dsn_option(json_option(command))


def with_store(dsn: str, action: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store, run an action, close the store.

    Raises:
        NotFound: the file of an embedded store is not there.
    """

    async def run() -> T:
        from luciole.wiring import open_store  # noqa: PLC0415 - `--help` needs no store

        refuse_absent(dsn)
        store = await open_store(dsn)
        try:
            return await action(store)
        finally:
            await store.close()

    return asyncio.run(run())


def node_ttl_us() -> int:
    """Return how long a node may be silent before it counts as gone."""
    from luciole.settings import load_settings  # noqa: PLC0415 - `--help` needs no settings

    return load_settings().node_ttl_us


def refuse_absent(dsn: str) -> None:
    """Refuse to make an empty store where somebody expects theirs.

    Raises:
        NotFound: the file of an embedded store is not there.
    """
    scheme, found, path = dsn.partition("://")
    if not found:
        scheme, path = "sqlite", f"/{dsn}"
    path = path.removeprefix("/").partition("?")[0]
    if scheme == "sqlite" and path and not Path(path).exists():
        raise NotFound(f"--dsn: there is no store at {path}; `luciole up APP` makes one, LUCIOLE_DSN names another")


def load_app(reference: str) -> "App":
    """Import the app that `module:attribute` names; modules are looked for in the current folder first.

    Raises:
        InvalidValue: the text is no reference, or what it names is no app.
        NotFound: there is no such module or attribute.
    """
    from luciole.app import App  # noqa: PLC0415 - `--help` needs no app

    module_name, _, attribute = reference.partition(":")
    attribute = attribute or "app"
    if not module_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidValue(f"APP: {reference!r} is no reference; write module:attribute, such as shop.jobs:app")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name is not None and not module_name.startswith(problem.name):
            raise NotFound(f"APP: {module_name} imports {problem.name}, which is not installed") from problem
        raise NotFound(f"APP: there is no module {module_name!r} in {Path.cwd()} or on the Python path") from None
    except LucioleError:
        raise  # A definition is wrong, and says itself what.
    except Exception as problem:
        where = _last_line_of(problem, module_name)
        raise InvalidValue(
            f"APP: {module_name} fails while it is imported: {type(problem).__name__}: {problem}{where}"
        ) from problem
    app = getattr(module, attribute, None)
    if isinstance(app, App):
        return app
    apps = [name for name, value in vars(module).items() if isinstance(value, App)]
    if app is None:
        raise NotFound(f"APP: {module_name} has no attribute {attribute!r}; {nearest(attribute, apps)}")
    raise InvalidValue(f"APP: {reference} is a {type(app).__name__}, no App; {nearest(attribute, apps)}")


def _last_line_of(problem: BaseException, module_name: str) -> str:
    """Return where in the user's code an import failed."""
    trace, found = problem.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] == module_name.partition(".")[0]:
            found = f" ({code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found
