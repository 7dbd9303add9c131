"""Every check and code of lint has an entry with its level, and an example of what is bad and what is good."""

from __future__ import annotations

import inspect
import re

import pytest
from checkout import ROOT
from fences import documented

import vally
from vally_command_lint.codes import CHECKS, LINT_CODES

PAGE = ROOT / "docs" / "reference" / "lint.md"
ROWS = {
    cells[0].strip("`"): cells
    for line in re.findall(r"^\| `.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    if len(cells := [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]) == 4
}


ARGUMENTS = set(inspect.signature(vally.lint).parameters)


def test_the_page_lists_every_check_code_and_argument_and_nothing_else() -> None:
    assert documented(PAGE) == {*CHECKS, *LINT_CODES, *ARGUMENTS}


@pytest.mark.parametrize("code", LINT_CODES)
def test_a_code_has_its_level_and_both_examples(code: str) -> None:
    _, level, bad, good = ROWS[code]
    assert level == LINT_CODES[code].level
    assert bad
    assert good
    assert bad != good
