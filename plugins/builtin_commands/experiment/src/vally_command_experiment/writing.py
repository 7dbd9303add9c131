"""Writing the files of an experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vally import VallyError, atomic_write, plain_value


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document atomically, with numbers as records have them; raises `VallyError` when that fails."""
    write_text(path, json.dumps(plain_value(document).value, ensure_ascii=False, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text atomically; raises `VallyError` when that fails."""
    try:
        atomic_write(path, text)
    except OSError as error:
        raise VallyError(f"cannot write it: {error.strerror or error}", where=str(path)) from error
