"""Running the server: filling the store, listening, and ending on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vally import VallyError, is_loopback, plural, print_warning, run_place
from vally_command_results.importing.session import require_directory
from vally_command_results.server.guard import AllowedHosts
from vally_command_results.server.site import Site
from vally_command_results.store import schema
from vally_command_results.store.opening import Store, open_memory, open_store

if TYPE_CHECKING:
    from vally import CliContext


def serve_results(context: CliContext, options: Mapping[str, Any]) -> int:
    """Serve until a signal; returns 0. Raises `VallyError` for what cannot be served."""
    with contextlib.ExitStack() as stack:
        site, label = _site(stack, context, options)
        stack.callback(site.store.close)
        count = _fill(site, label)
        listener = stack.enter_context(_listening(options["host"], options["port"]))
        _warn_about(options)
        port = listener.getsockname()[1]
        ending = Ending()
        stack.enter_context(ending.on_signals())
        _say(options, label, count, port)
        _run(site, listener, context, options, ending)
    return 0


def _site(stack: contextlib.ExitStack, context: CliContext, options: Mapping[str, Any]) -> tuple[Site, str]:
    if options["demo"]:
        from vally_command_results.server.demo import write_demo

        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vally-demo-")))
        write_demo(root)
        return Site(open_memory(), "directory", [(root, "demo")]), "demo"
    directory = options["directory"]
    words = options["store"] or (None if directory else context.environ.get("VALLY_STORE"))
    if directory is None:
        store: Store = open_store(str(words), context.cwd, create=False)
        return Site(store, "store"), store.shown
    directory = run_place(directory, context, where="DIRECTORY")
    found = require_directory(context.cwd, directory)
    store = open_memory() if words is None else open_store(str(words), context.cwd, create=True)
    return Site(store, "directory" if words is None else "directory+store", [found]), directory


def _fill(site: Site, label: str) -> int:
    summary = site.refresh()
    for run in summary.runs if summary is not None else ():
        if run.result == "failed":
            print_warning(f"{run.source}: {run.message}")
    for warning in summary.warnings if summary is not None else ():
        print_warning(warning)
    from sqlalchemy import func, select

    with site.store.reading() as connection:
        count = connection.scalar(select(func.count()).select_from(schema.runs)) or 0
    if not count:
        raise VallyError(
            f"'{label}' holds no run", hints=["make some with `vally eval`", "or look at `vally serve --demo`"]
        )
    return int(count)


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise VallyError(f"cannot listen on {host}: {error.strerror or error}", where="--host") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError as error:
            busy = getattr(error, "errno", None) in (48, 98, 10048)
            if busy:
                raise VallyError(f"{host}:{port} is already in use", hints=["--port 0 takes a free one"]) from error
            raise VallyError(str(error.strerror), where=f"{host}:{port}") from error
        yield listener


def _warn_about(options: Mapping[str, Any]) -> None:
    if not is_loopback(options["host"]):
        print_warning("reachable from other machines; there is no authentication")
    if "*" in options["allowed_hosts"]:
        print_warning("--allowed-host '*' turns the check of host names off; any web page can then read the results")


def _say(options: Mapping[str, Any], label: str, count: int, port: int) -> None:
    host = options["host"]
    shown = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host
    address = f"http://{shown}:{port}"
    lines = [f"Serving {plural(count, 'run')} from {label}"]
    if not options["api_only"]:
        lines.append(f"  Dashboard  {address}/")
    click.echo("\n".join([*lines, f"  API        {address}/api", "Press Ctrl-C to stop."]))
    if options["open_browser"]:
        import webbrowser

        webbrowser.open(f"{address}/")


def _run(site: Site, listener: socket.socket, context: CliContext, options: Mapping[str, Any], ending: Ending) -> None:
    import uvicorn

    from vally_command_results.server.app import make_app

    hosts = AllowedHosts.of(options["host"], options["allowed_hosts"])
    app = make_app(site, hosts=hosts, cors=options["cors"], pages=not options["api_only"])
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=context.display.verbose,
        server_header=False,
        h11_max_incomplete_event_size=64 * 1024,
        timeout_graceful_shutdown=5,
        lifespan="off",
    )
    if context.display.verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    _send_to_the_diagnostic_log("uvicorn.error")
    server = uvicorn.Server(config)
    # The library would raise what ended it once more.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]  # no other way to switch it off
    ending.server = server
    if not ending.asked:
        asyncio.run(server.serve(sockets=[listener]))


def _send_to_the_diagnostic_log(name: str) -> None:
    """Let a library speak in our log, and there of its errors alone unless more is asked for than is usual.

    It warns of every request that is none, which whoever serves can do nothing about.
    """
    ours, library = logging.getLogger("vally"), logging.getLogger(name)
    library.handlers[:] = ours.handlers
    library.propagate = False
    library.setLevel(logging.ERROR if ours.level == logging.WARNING else ours.level)


class Ending:
    """Takes the signals that end a server, from the moment on in which people are told that it runs."""

    def __init__(self) -> None:
        self.asked = False
        self.server: Any = None

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take the signals inside the block."""
        names = ("SIGINT", "SIGTERM", "SIGBREAK")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {number: signal.signal(number, self._end) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, *_: object) -> None:
        if self.server is not None:
            # A second signal does not wait for answers that are still being sent.
            self.server.force_exit = self.asked
            self.server.should_exit = True
        self.asked = True
