"""The entry point of the console script; the program itself is imported when more than its version is wanted."""

from __future__ import annotations

import sys

from vally._version import __version__


def main() -> None:
    """Run the program with the words of the command line and end the process."""
    if sys.argv[1:] in (["--version"], ["-V"]) and _printed(__version__):
        return
    from vally.cli.process import leave, prepare_process
    from vally.cli.program import run

    prepare_process()
    leave(run(sys.argv[1:]))


def _printed(line: str) -> bool:
    """Print a line; False, with nothing printed, when stdout cannot take it, which is for the program to tell."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        return False
    return True
