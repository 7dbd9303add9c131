"""`python -m vally_executor_copilot_sdk`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from vally import CliContext, VallyError
from vally_executor_copilot_sdk.provision import TESTED_VERSION, configured_registry, provision

PROGRAM = "python -m vally_executor_copilot_sdk"


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run the program; returns its exit code."""
    env = os.environ if environ is None else environ
    words = _parser().parse_args(arguments)
    try:
        registry = words.registry or configured_registry(env)
        found = provision(words.version, words.dir or _cache(env), env, registry)
    except VallyError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 1
    sys.stdout.write(f"{found}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Prepare this machine for the executor copilot-sdk.")
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser(
        "provision",
        help="fetch the Copilot runtime and print its path",
        description="Fetch the Copilot runtime from the npm registry, unless it is there, and print its path. It has "
        "its own licence, which lies beside it.",
    )
    fetch.add_argument("--version", default=TESTED_VERSION, help="version of @github/copilot (default: %(default)s)")
    fetch.add_argument("--dir", type=Path, help="where to put it (default: vally's cache)")
    fetch.add_argument("--registry", metavar="URL", help="npm registry (default: npm_config_registry, else npm's own)")
    return parser


def _cache(env: Mapping[str, str]) -> Path:
    return CliContext(environ=env, cwd=Path.cwd()).cache_dir / "copilot"
