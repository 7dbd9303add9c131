"""`vally serve` as its users type it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from vally import CliContext, display_options

DEFAULT_PORT = 3200


@click.command("serve")
@click.argument("directory", required=False)
@click.option("--store", metavar="PATH_OR_URL", help="Serve this store, or import into it.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 takes a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--cors", is_flag=True, help="Let pages of other origins read the API.")
@click.option("--allowed-host", "allowed_hosts", multiple=True, metavar="HOST", help="Further accepted host name.")
@click.option("--open", "open_browser", is_flag=True, help="Open the dashboard in a browser.")
@click.option("--api-only", is_flag=True, help="No dashboard.")
@click.option("--demo", is_flag=True, help="Serve generated data.")
@display_options
@click.pass_obj
def serve(context: CliContext, /, **options: Any) -> int:
    """Serve an HTTP API and a dashboard over run directories or a store."""
    _check(context, options)
    from vally_command_results.serving import serve_results

    return serve_results(context, options)


def _check(context: CliContext, options: Mapping[str, Any]) -> None:
    if options["demo"] and (options["directory"] or options["store"]):
        raise click.UsageError("--demo brings its own data, so it cannot be combined with DIRECTORY or --store")
    known = options["directory"] or options["store"] or context.environ.get("VALLY_STORE") or options["demo"]
    if not known:
        raise click.UsageError("name a DIRECTORY of runs or a --store, or try --demo")


def command() -> click.Command:
    """Make the command."""
    return serve
