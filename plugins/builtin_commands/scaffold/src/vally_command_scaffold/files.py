"""Writing files that a user asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vally import VallyError, atomic_write, print_line

if TYPE_CHECKING:
    from vally import CliContext


def create(context: CliContext, name: str | Path, text: str) -> None:
    """Write a file and say so; parents are made. Raises VallyError when it cannot be written."""
    path = context.cwd / name
    write(context, path, text)
    if not context.display.quiet:
        print_line(f"Created {shown(context, path)}")


def write(context: CliContext, path: Path, text: str) -> None:
    """Write a file; parents are made. Raises VallyError when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text, is_named=True)
    except OSError as error:
        raise VallyError(f"cannot write the file: {error.strerror}", where=shown(context, path)) from None


def shown(context: CliContext, path: Path) -> str:
    """A path as messages name it: relative to the current directory when below it."""
    return path.relative_to(context.cwd).as_posix() if path.is_relative_to(context.cwd) else path.as_posix()


def is_schema(path: Path) -> bool:
    """Whether a file is a JSON Schema that vally wrote."""
    import json

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and str(document.get("$id", "")).startswith("https://vally.example/schema/")
