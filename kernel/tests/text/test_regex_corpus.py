"""Recorded results of a JavaScript engine, when a corpus is at hand: `VALLY_CORPUS`, else `../shared/corpus`."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

ROOT = Path(__file__).parents[3]
CASES = Path(os.environ.get("VALLY_CORPUS", ROOT.parent / "shared" / "corpus"), "regex_cases.jsonl")

if CASES.is_file():

    def test_recorded_cases_agree() -> None:
        spec = importlib.util.spec_from_file_location("check", ROOT / "tests" / "tools" / "check_regex_corpus.py")
        assert spec is not None
        assert spec.loader is not None
        check = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(check)
        assert [difference for difference in check.disagreements(CASES) if difference] == []
