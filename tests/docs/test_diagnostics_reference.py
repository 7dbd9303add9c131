"""Every diagnostic has an entry with a bad and a good example, and the examples are what they say."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
from checkout import PLUGINS, ROOT
from diagnostic_examples import Entry, build, option, path_of, read_page

import vally
from vally.testing import run_cli
from vally_command_lint.codes import LINT_CODES
from vally_command_lint.findings import Finding
from vally_command_lint.linting import LintOptions, lint

PARSED = read_page()
HOST = vally.PluginHost()
# Where files are written ten thousand times, the example takes seconds.
SLOW = {"too-many-evals"}
by_code = pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=entry.code, marks=[pytest.mark.heavy] if entry.code in SLOW else [])
        for entry in PARSED.entries
    ],
)


def test_every_code_has_one_entry() -> None:
    assert sorted(vally.DIAGNOSTIC_CODES) == sorted(entry.code for entry in PARSED.entries)


def literal_codes(path: Path) -> set[str]:
    """Codes that stand as literals where a source makes a finding."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("Diagnostic", "Finding"):
            values = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
        elif called in ("add", "report", "_report", "_stop", "finding", "at_entry", "at_stimulus"):
            values = node.args[:1]
        else:
            continue
        found |= {value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)}
    return {code for code in found if re.fullmatch(r"[a-z]+(-[a-z]+)+", code)}


def test_no_source_makes_a_finding_that_is_not_described() -> None:
    sources = [ROOT / "kernel" / "src", *(plugin.path / "src" for plugin in PLUGINS)]
    made = {code for source in sources for path in source.rglob("*.py") for code in literal_codes(path)}
    assert len(made) > 100
    assert made <= {*vally.DIAGNOSTIC_CODES, *LINT_CODES}


@by_code
def test_an_entry_begins_with_its_level(entry: Entry) -> None:
    code = vally.DIAGNOSTIC_CODES[entry.code]
    level = re.match(r"[A-Z][a-z]+", entry.text)
    assert level is not None
    assert level[0].lower() == code.level
    lint_level = re.search(r"in `vally lint` an? (\w+)", entry.text)
    assert (lint_level[1] if lint_level else None) == code.lint


def findings(root: Path) -> list[Finding]:
    report = lint(LintOptions(whole_project=True), cwd=root, project=vally.find_project(root, root), host=HOST)
    return list(report.all_findings)


def said(entry: Entry, kind: str, root: Path) -> str:
    """What the commands of an example print."""
    text = ""
    for line in entry.block(kind).text.splitlines():
        program, *words = shlex.split(line.removeprefix("$ "))
        if program == "ln":
            (root / words[2]).symlink_to(words[1])
            continue
        result = run_cli(words, cwd=root)
        text += result.stdout + result.stderr
    assert "Traceback" not in text
    return text


@by_code
def test_the_bad_example_yields_the_code_and_no_other(entry: Entry, tmp_path: Path) -> None:
    build(PARSED, entry, "bad", tmp_path)
    block = entry.block("bad")
    if block.language == "console":
        assert entry.code in said(entry, "bad", tmp_path)
        return
    found = findings(tmp_path)
    assert {item.code for item in found} == {entry.code, option(block, "with") or entry.code}
    at = option(block, "at")
    assert [
        "file" if item.line is None else f"{item.line}:{item.column}" for item in found if item.code == entry.code
    ] == [at]
    assert [item.file for item in found if item.code == entry.code] == [path_of(block)]


@by_code
def test_the_good_example_yields_nothing(entry: Entry, tmp_path: Path) -> None:
    build(PARSED, entry, "good", tmp_path)
    if entry.block("good").language == "console":
        assert entry.code not in said(entry, "good", tmp_path)
    else:
        assert findings(tmp_path) == []
