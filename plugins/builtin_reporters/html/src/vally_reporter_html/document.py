"""The whole file, made piece by piece from a template that escapes every text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from vally_reporter_html.page import Page
from vally_reporter_html.text import milliseconds
from vally_reporter_html.timeline import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from vally import RunStart, RunSummary

_PIECES = 50
"""Pieces of the template that are written together."""


def document(start: RunStart, summary: RunSummary, run_dir: Path) -> Iterator[bytes]:
    """The pieces of the file, encoded. Raises `OSError` when the records cannot be read."""
    environment = Environment(
        loader=PackageLoader("vally_reporter_html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"ms": milliseconds, "one_line": one_line}
    style, script = _asset("style.css"), _asset("script.js")
    stream = environment.get_template("page.html").stream(
        page=Page(start, summary, run_dir),
        style=style,
        script=script,
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
    )
    stream.enable_buffering(_PIECES)
    return (piece.encode("utf-8", "replace") for piece in stream)


def _asset(file: str) -> str:
    text: str = (files("vally_reporter_html") / "assets" / file).read_text(encoding="utf-8")
    return f"\n{text}"


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
