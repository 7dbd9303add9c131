"""The checks at the end of the chapter on eval specs that no other test covers."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from vally.spec import DIAGNOSTIC_CODES

GRADED = "graders: [{type: completed}]"


def test_four_findings_in_one_pass(work: Any) -> None:
    found = work("stimuli:\n  - name: x\n    promt: p\n    tag: t\n    graders: [{type: complet}]\n")
    assert sorted(found.found) == [
        "2:5 MISSING-PROMPT",
        "3:5 UNKNOWN-STIMULUS-FIELD",
        "4:5 UNKNOWN-STIMULUS-FIELD",
        "5:22 UNKNOWN-GRADER-TYPE",
    ]


def test_a_large_spec_loads_fast(work: Any) -> None:
    stimuli = [
        f"  - name: stimulus-{n}\n    prompt: |\n      {'word ' * 105}\n    tags: {{area: [a, b], priority: p1}}\n"
        f"    rubric: [one, two]\n    graders:\n      - {{type: file-exists, config: {{path: f{n}.txt}}}}\n"
        f"      - {{type: output-matches, config: {{pattern: 'file {n}'}}}}\n      - {{type: prompt}}\n"
        for n in range(200)
    ]
    text = "stimuli:\n" + "".join(stimuli)
    assert len(text) > 150 * 1024
    work(text)
    seconds = min(_timed(lambda: work(text).clean) for _ in range(3))
    assert seconds < 1


def test_billion_laughs_fail_fast(work: Any) -> None:
    lines = ["x-0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 40)]
    text = "".join(lines) + f"stimuli:\n  - {{name: a, prompt: p, {GRADED}}}\n"
    work(text)
    assert min(_timed(lambda: work(text)) for _ in range(3)) < 0.5
    assert work(text).codes == ["yaml-limit"]


def _timed(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def test_older_spellings_load_with_warnings(work: Any) -> None:
    text = (
        "config: {runs: ${RUNS=5}, timeout: 120}\narea: x\nstimuli:\n  - name: a\n    prompt: p\n"
        "    graders: [{type: completed, name: looks good}]\n"
    )
    found = work(text)
    assert sorted(found.codes) == ["bare-duration", "deprecated-grader-name", "deprecated-key", "foreign-key"]
    assert {item.level for item in found.diagnostics} == {"warning"}
    assert (found.spec.defaults.runs, found.spec.defaults.timeout_ms) == (5, 120_000)
    strict = work(text, strict=True)
    assert {item.level for item in strict.diagnostics} == {"error"}


def test_moving_a_project_changes_only_absolute_paths(work: Any, tmp_path: Path) -> None:
    text = f"environment: e\nstimuli:\n  - {{name: a, prompt: p, {GRADED}, attachments: [f]}}\n"

    def loaded(root: str) -> str:
        work.write(f"{root}/evals/f")
        work.skill(f"{root}/s")
        work.write(f"{root}/.vally.yaml", "environments: {e: {skills: [s]}}\n")
        from vally import find_project

        project = find_project(work.root / root, work.root)
        document = work(text, name=f"{root}/evals/eval.yaml", project=project).clean.document
        return str(document).replace(str(work.root / root), "<root>")

    assert loaded("one") == loaded("two/deeper")


def test_loading_opens_no_connection_and_starts_no_process(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("not while loading")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    work.skill("s")
    (work.root / ".git").mkdir()
    servers = "mcpServers: {m: {type: http, url: 'http://h'}}"
    found = work(
        f"environment: {{skills: [s], git: {{type: worktree}}, commands: [make], {servers}}}\n"
        "defaults: {judge_provider: {type: openai, baseUrl: 'https://h'}}\n"
        f"stimuli:\n  - {{name: a, prompt: p, {GRADED}, golden_command: make}}\n"
    )
    assert found.found == []


# Codes


LATER = {
    # A finding of a command that compares variants.
    "baseline-required",
    # An error of staging, and findings of a command.
    *("environment-file-escape", "unused-parameter", "too-many-evals"),
}


def test_every_code_has_a_test() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    tested = {word.lower() for word in re.findall(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+", texts)}
    assert set(DIAGNOSTIC_CODES) - tested - LATER == set()


def test_levels() -> None:
    in_lint = {code: entry.lint for code, entry in DIAGNOSTIC_CODES.items() if entry.lint}
    assert in_lint == {
        "unresolved-parameter": "warning",
        "git-source-not-found": "warning",
        "suite-matched-nothing": "warning",
        "nothing-under-test": "info",
    }
