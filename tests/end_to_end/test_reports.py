"""The reports of one run that has everything: passes, failures, errors, skips, several trials and models, odd names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import junitparser
import pytest
from markdown_it import MarkdownIt

from vally import ReporterSpec
from vally.testing import CliResult, ProjectBuilder, run_cli

HOSTILE = "\x1b[31mred\x1b[0m ::error::x | `tick` <script>alert(1)</script> \u202ebidi\u2069 ##[error]y [a](b)"
SAYS_HELLO = {"type": "output-contains", "config": {"substring": "hello"}}
SAYS_MORE = {"type": "output-contains", "config": {"substring": "more | <b>`x`</b> ::error::z"}}
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def project(root: Path) -> ProjectBuilder:
    made = ProjectBuilder(root)
    fixtures = {
        "passes": {"output": "hello\nworld"},
        "fails": {"output": f"::error::from the agent\n{HOSTILE}\n```\n| x | y |\n</details>\n"},
        "errors": {"error": {"message": f"the provider is down: {HOSTILE}", "code": "provider-error"}},
        "skips": {"skip": f"no browser {HOSTILE}"},
    }
    for name, content in fixtures.items():
        made.file(f"evals/many/fixtures/{name}.json", json.dumps(content))
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures"}}
    made.eval(
        "many",
        [
            {"name": "passes", "graders": [SAYS_HELLO]},
            {"name": "fails", "graders": [SAYS_HELLO, {"type": "completed"}, SAYS_MORE]},
            {"name": "errors", "graders": [SAYS_HELLO]},
            {"name": "skips", "graders": [SAYS_HELLO]},
            {"name": "has no graders"},
            {"name": "odd | `name` <b> ::warning::w [l](u)", "prompt": "hello", "graders": [SAYS_HELLO]},
        ],
        defaults={"executor": executor, "runs": 2},
        scoring={"threshold": 0.8},
    )
    made.eval("one", [{"name": "passes", "prompt": "hello", "graders": [SAYS_HELLO]}], defaults={"executor": "mock"})
    return made


def evaluate(root: Path, *words: str, env: dict[str, str] | None = None) -> CliResult:
    project(root)
    args = ["eval", "-e", "evals/*/eval.yaml", "--model", "gpt-x,gpt-y", "--output-dir", "out", "--junit", *words]
    return run_cli(args, cwd=root, env=env)


def written(result: CliResult, name: str) -> str:
    assert result.run_dir is not None
    return (result.run_dir / name).read_text(encoding="utf-8")


def test_the_log_can_be_parsed(tmp_path: Path) -> None:
    result = evaluate(tmp_path)
    assert result.exit_code == 1
    blocks = re.findall(r"^Graders \((\d+)/(\d+)\)\n─{41}\n((?:  .*\n)+)\n(.*)\n$", result.stdout, re.MULTILINE)
    # Per model two failing trials of `fails`; and the only trial of the second eval.
    counts = [(passed, total, closing) for passed, total, _, closing in blocks]
    assert sorted(counts) == sorted([("1", "3", "2 grader(s) failed.")] * 4 + [("1", "1", "All graders passed.")] * 2)
    for passed, total, lines, _ in blocks:
        glyphs = [re.fullmatch("  ([✔✘⚠]) (.+?)  (.*)", line)[1] for line in lines.splitlines()]  # type: ignore[index]
        assert (glyphs.count("✔"), len(glyphs)) == (int(passed), int(total))
    assert result.stdout.count("Output directory: ") == 1
    assert len(re.findall("^━━━ .* ━━━$", result.stdout, re.MULTILINE)) == 14
    assert re.search(r"^FAILED  2 of 4 evals passed · 26 trials · ", result.stdout, re.MULTILINE)
    assert len(re.findall(r"^\[\d+/26\] [✔✘⚠○] ", result.stderr, re.MULTILINE)) == 26


def test_every_table_row_has_its_result_last(tmp_path: Path) -> None:
    text = written(evaluate(tmp_path), "eval-results.md")
    tables = [block.splitlines() for block in text.split("\n\n") if re.match(r"\| (Eval|Stimulus|Grader) \|", block)]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for table in tables for line in table[2:]]
    assert len(rows) == 4 + 14 + 4 * 3 + 2
    for row in rows:
        assert row[0].strip()
        assert row[-1].strip().startswith(("✅", "❌", "⏭️"))


def test_the_markdown_renders_as_meant(tmp_path: Path) -> None:
    text = written(evaluate(tmp_path), "eval-results.md")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert set(html) == {"<details><summary>Agent output</summary>", "</details>"}
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {child.type for child in inline}
    assert kinds <= {"text", "strong_open", "strong_close", "softbreak"}
    headings = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings[:2] == ["Vally eval results", "many (gpt-x)"]
    fences = [token.content for token in tokens if token.type == "fence"]
    assert len(fences) == text.count("<summary>")
    assert all(CONTROLS.search(content.replace("\n", "")) is None for content in fences)
    bodies = [token for token in tokens if token.type == "tbody_open"]
    assert len(bodies) == 1 + 4 + 4 + 2


def test_the_junit_file_is_sound(tmp_path: Path) -> None:
    result = evaluate(tmp_path)
    text = written(result, "eval-results.junit.xml")
    assert not [value for value in re.findall('"([^"]*)"', text) if ">" in value or "<" in value]
    root = ElementTree.fromstring(text.encode())
    names = ["many [gpt-x]", "many [gpt-y]", "one [gpt-x]", "one [gpt-y]"]
    assert [suite.attrib["name"] for suite in root] == names
    assert [root.attrib[key] for key in ("tests", "failures", "errors", "skipped")] == ["26", "4", "4", "4"]
    for suite in root:
        counted = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")}
        assert {tag: int(suite.attrib[f"{tag}s".replace("skippeds", "skipped")]) for tag in counted} == counted
        first = suite.find("properties/property")
        assert first is not None
        assert first.attrib["name"] == ("threshold" if suite.attrib["name"].startswith("many") else "model")
        for case in suite.iter("testcase"):
            assert ("(trial " in case.attrib["name"]) == suite.attrib["name"].startswith("many")
    sums = sum(round(float(case.attrib["time"]) * 1000) for case in root.iter("testcase"))
    assert root.attrib["time"] == f"{sums / 1000:.3f}"
    assert result.run_dir is not None
    read = junitparser.JUnitXml.fromfile(str(result.run_dir / "eval-results.junit.xml"))
    assert sum(len(list(suite)) for suite in read) == 26


@pytest.mark.parametrize(
    ("words", "copy"),
    [(["--junit", "reports/j.xml"], "reports/j.xml"), (["--junit=j.xml", "--quiet"], "j.xml"), (["--junit"], None)],
)
def test_the_older_spelling_of_junit_makes_a_copy(tmp_path: Path, words: list[str], copy: str | None) -> None:
    project(tmp_path)
    result = run_cli(["eval", *words, "-e", "evals/one/eval.yaml", "--output-dir", "out"], cwd=tmp_path)
    assert result.exit_code == 0
    warned = "warning: '--junit <file>' is deprecated, use '--junit'\n"
    assert (warned in result.stderr) == (copy is not None)
    text = written(result, "eval-results.junit.xml")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("j.xml")] == ([copy] if copy else [])
    if copy:
        assert (tmp_path / copy).read_text(encoding="utf-8") == text


def test_the_page_is_one_file_and_text_stays_text(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "--html", "--output", "json")
    page = written(result, "eval-results.html")
    artifacts = json.loads(result.stdout)["artifacts"]
    assert set(artifacts) == {"jsonl", "markdown", "html", "junit", "spans", "manifest"}
    assert all((tmp_path / path).is_file() for path in artifacts.values())
    assert page.count("<script>") == page.count("</script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert not CONTROLS.search(page.replace("\n", ""))
    assert page.count('class="trial filterable') == 26


def test_without_the_option_there_is_no_page(tmp_path: Path) -> None:
    result = evaluate(tmp_path)
    assert result.run_dir is not None
    assert not (result.run_dir / "eval-results.html").exists()


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    result = evaluate(tmp_path, "--output", "jsonl")
    assert result.stdout == written(result, "results.jsonl")
    assert re.search("^━━━ fails ━━━$", result.stderr, re.MULTILINE)


@pytest.mark.parametrize("words", [(), ("--verbose",), ("--output", "json"), ("--quiet",)])
def test_no_text_reaches_the_terminal_as_a_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = evaluate(tmp_path, *words)
    assert not CONTROLS.search(result.stderr)
    assert "--output" in words or not CONTROLS.search(result.stdout)
    assert not CONTROLS.search(written(result, "eval-results.md").replace("\n", ""))


@pytest.mark.parametrize("words", [(), ("--verbose",), ("--output", "json")])
def test_no_text_reaches_github_as_a_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    workflow = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    workflow["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary.md")
    result = evaluate(tmp_path, *words, env=workflow)
    report = result.stderr if "--output" in words else result.stdout
    assert "::error::from the agent" not in report
    rest = re.sub(r"::stop-commands::([0-9a-f]{32})\n.*?\n::\1::\n", "", report, flags=re.DOTALL)
    assert len(rest) < len(report)
    own = re.compile(
        r"::(error|warning) file=evals/(many|one)/eval.yaml,line=\d+,title=((many|one) / |no-graders)", re.MULTILINE
    )
    assert len(own.findall(result.stderr)) == 4 + 2 + 1
    lines = [line for line in f"{rest}\n{result.stderr}".splitlines() if not own.match(line)]
    inside = "\n".join(lines)
    inside = re.sub(r"::stop-commands::([0-9a-f]{32})\n.*?\n::\1::\n", "", inside, flags=re.DOTALL)
    assert not re.search(r"^\s*::|##\[", inside, re.MULTILINE)
    assert "<script" not in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_the_program_prints_the_same_into_a_pipe(tmp_path: Path) -> None:
    project(tmp_path)
    words = ["eval", "-e", "evals/one/eval.yaml", "--output-dir", "out"]
    completed = subprocess.run(
        [sys.executable, "-m", "vally", *words],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VALLY_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        encoding="utf-8",
    )
    lines = completed.stdout.splitlines()
    assert lines[0] == "[1/1] ✔ one / passes (default-model)  " + lines[0].split("  ")[-1]
    assert lines[1:3] == ["━━━ passes ━━━", "✔ PASS  1/1 trials passed · score 1.00 · one · default-model"]
    assert lines[-1].startswith("Output directory: out/")
    assert "\x1b" not in completed.stdout


def outcomes(result: CliResult) -> dict[str, Any]:
    return {record["itemId"]: record["status"] for record in result.records[:-1]}


def test_reports_do_not_change_the_records(tmp_path: Path) -> None:
    plain = evaluate(tmp_path / "a", "--quiet")
    verbose = evaluate(tmp_path / "b", "--verbose", "--output", "jsonl")
    assert outcomes(plain) == outcomes(verbose)
    assert len(outcomes(plain)) == 26


class Breaks:
    """A reporter that fails at the end."""

    def on_run_complete(self, event: Any) -> None:
        raise OSError("\x1b[31mno\nspace")


@pytest.mark.parametrize("words", [(), ("--output", "json"), ("--quiet",)])
def test_a_reporter_that_failed_is_named_in_the_closing_lines(tmp_path: Path, words: tuple[str, ...]) -> None:
    project(tmp_path)
    record = ReporterSpec(name="breaks", summary="fails at the end", factory=Breaks)
    args = ["eval", "-e", "evals/one/eval.yaml", "--output-dir", "out", *words]
    result = run_cli(args, cwd=tmp_path, plugins=[record])
    assert result.exit_code == 0
    lines = (result.stderr if "json" in words else result.stdout).splitlines()
    named = "reporter 'breaks' failed and is disabled: OSError: no space"
    if "--quiet" in words:
        assert named not in lines
    else:
        closing = lines[lines.index("Saved artifacts") - 1 :]
        assert closing[0] == named
        assert any(line.startswith("PASSED  1 of 1 evals passed") for line in lines[: -len(closing)])
    assert f"warning: {named}" in result.stderr.splitlines()


def test_the_closing_lines_fit_a_stream_of_ascii(tmp_path: Path) -> None:
    project(tmp_path)
    completed = subprocess.run(
        [sys.executable, "-m", "vally", "eval", "-e", "evals/one/eval.yaml", "--output-dir", "out"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "VALLY_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONIOENCODING": "ascii",
        },
        capture_output=True,
        check=True,
    )
    text = completed.stdout.decode("ascii")
    assert "\n  [ok] output-contains hello  'hello' found in output\n" in text
    assert "\n  JSONL    -> out/" in text
    assert "\\u" not in text
    assert completed.stderr.decode("ascii").startswith("[1/1] [ok] one / passes (default-model)")
