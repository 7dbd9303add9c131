"""Path segments from names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vally.run.segments import SegmentNamer, segment


@pytest.mark.parametrize(
    ("names", "segments"),
    [
        pytest.param(["writes json: twice"], ["writes-json-twice"], id="SEG-1"),
        pytest.param(["skill=off,model=openai/gpt-5"], ["skill=off,model=openai-gpt-5"], id="SEG-2"),
        pytest.param(["../../etc/passwd"], ["etc-passwd"], id="SEG-3"),
        pytest.param(["???", "con", "nul.txt"], ["_", "con_", "nul.txt_"], id="SEG-4"),
        pytest.param(["a/b", "a b"], ["a-b", "a-b-c8687a08"], id="SEG-5"),
        pytest.param(["x" * 100], ["x" * 71 + "-09ecb6eb"], id="SEG-6"),
        pytest.param(["Prüfung 試験"], ["Prüfung-試験"], id="SEG-7"),
        pytest.param(["Case", "case"], ["Case", "case-bbfcd416"], id="SEG-8"),
        pytest.param(["Pru\u0308fung", "Prüfung"], ["Prüfung", "Prüfung"], id="one name after NFC"),
        pytest.param(["", ".", "..", "---"], ["_", "_-cdb4ee2a", "_-5ec1f7e7", "_-cb3f91d5"], id="nothing is left"),
        pytest.param(["COM1", "lpt9.log", "com10", "aux-x"], ["COM1_", "lpt9.log_", "com10", "aux-x"], id="devices"),
        pytest.param(["a\x00b", "tab\tnew\nline"], ["a-b", "tab-new-line"], id="controls"),
    ],
)
def test_segments(names: list[str], segments: list[str]) -> None:
    namer = SegmentNamer()
    assert [namer.segment((), name) for name in names] == segments
    assert [namer.segment((), name) for name in names] == segments


def test_each_parent_has_names_of_its_own() -> None:
    namer = SegmentNamer()
    assert namer.path(("e", "a/b", "m")) == ("e", "a-b", "m")
    assert namer.path(("e", "a b", "m")) == ("e", "a-b-c8687a08", "m")
    assert namer.path(("f", "a b", "m")) == ("f", "a-b", "m")


def test_a_name_that_looks_like_a_resolved_one() -> None:
    namer = SegmentNamer()
    given = [namer.segment((), name) for name in ("a-b-c8687a08", "a/b", "a b")]
    assert len({name.casefold() for name in given}) == 3


@given(st.text(max_size=200))
def test_every_name_gives_a_usable_file_name(name: str) -> None:
    found = segment(name)
    assert 0 < len(found) <= 80
    assert len(found.encode()) <= 200
    assert Path(found).name == found
    assert found == segment(name)
