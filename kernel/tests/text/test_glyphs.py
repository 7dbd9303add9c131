"""Stand-ins where a stream cannot encode the glyphs of reports."""

from __future__ import annotations

import io
from typing import Any

import pytest

from vally import can_encode, fit_glyphs

TEXT = "✔ ✘ ⚠ ○ ℹ ✗ ━ ─ → … · é"


def stream(encoding: str) -> Any:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "fitted"),
    [
        ("utf-8", TEXT),
        ("utf-16", TEXT),
        ("ascii", "[ok] [FAIL] [warn] [skip] [info] x = - -> ... - é"),
        ("latin-1", "[ok] [FAIL] [warn] [skip] [info] x = - -> ... · é"),
        ("cp1252", "[ok] [FAIL] [warn] [skip] [info] x = - -> … · é"),
    ],
)
def test_stand_ins(encoding: str, fitted: str) -> None:
    assert fit_glyphs(TEXT, stream(encoding)) == fitted


def test_a_stream_without_encoding_can_show_everything() -> None:
    assert fit_glyphs(TEXT, io.StringIO()) == TEXT


@pytest.mark.parametrize(("encoding", "able"), [("utf-8", True), ("ascii", False), ("latin-1", False)])
def test_whether_a_stream_can_show_a_text(encoding: str, able: bool) -> None:
    assert can_encode(stream(encoding), "⠙") is able


def test_arrows_and_dashes_have_stand_ins_too() -> None:
    assert fit_glyphs("→ a ← b – c", stream("ascii")) == "-> a <- b - c"
