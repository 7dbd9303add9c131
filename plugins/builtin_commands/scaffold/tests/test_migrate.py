"""`vally migrate`: each older spelling, alone, in the forms in which people write it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from vally import GraderSpec, PluginHost, find_project, load_eval_spec, read_eval_spec
from vally.testing import CliResult, ProjectBuilder, plugin_host

Run = Callable[..., CliResult]
TAIL = "stimuli:\n  - {name: a, prompt: p}\n"
STIMULUS = "stimuli:\n  - name: a\n"


@pytest.fixture
def host(graders: tuple[GraderSpec, ...]) -> PluginHost:
    return plugin_host(*graders)


def document(project: ProjectBuilder, host: PluginHost) -> Mapping[str, Any]:
    """What the spec means, and that nothing is wrong with it."""
    found = find_project(project.root, project.root)
    loaded = read_eval_spec(project.root / "eval.yaml", project=found, host=host, lint=True, skill_dirs=True)
    assert not [item for item in loaded.diagnostics if item.level == "error"], loaded.diagnostics
    assert loaded.spec is not None
    return loaded.spec.document


def migrated(project: ProjectBuilder, run: Run, text: str | bytes) -> bytes:
    path = project.file("eval.yaml", text)
    result = run("migrate", "eval.yaml")
    assert result.exit_code == 0, result.stderr
    again = run("migrate", "--check", "eval.yaml")
    assert (again.exit_code, again.stdout) == (0, "0 of 1 file would change\n"), again.stdout
    return path.read_bytes()


def dedented(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


CASES = {
    "config": ("config: {runs: 2}  # was so\n", "defaults: {runs: 2}  # was so\n"),
    "config-quoted": ('"config":\n  runs: 2\n', '"defaults":\n  runs: 2\n'),
    "seconds": ("defaults: {timeout: 120, runs: 3}\n", "defaults: {timeout: 120s, runs: 3}\n"),
    "seconds-padded": ("defaults:\n  timeout:   08   # eight\n", "defaults:\n  timeout:   8s   # eight\n"),
    "seconds-fraction": ("defaults: {timeout: 1.50}\n", "defaults: {timeout: 1.5s}\n"),
    "seconds-quoted": ("defaults: {timeout: '90', runs: 1}\n", "defaults: {timeout: '90s', runs: 1}\n"),
    "seconds-double-quoted": ('defaults:\n  timeout: "90"\n', 'defaults:\n  timeout: "90s"\n'),
    "seconds-tagged": ("defaults: {timeout: !!int 90}\n", "defaults: {timeout: 90s}\n"),
    "seconds-tagged-and-anchored": (
        "defaults: {timeout: &t !!int 90, max_agent_duration: *t}\n",
        "defaults: {timeout: &t 90s, max_agent_duration: *t}\n",
    ),
    "seconds-anchored": (
        "defaults: {timeout: &t 90, max_agent_duration: *t}\n",
        "defaults: {timeout: &t 90s, max_agent_duration: *t}\n",
    ),
    "seconds-by-alias": (
        "defaults: {runs: &n 9, timeout: *n}\n",
        "defaults: {runs: &n 9, timeout: 9s}\n",
    ),
    "seconds-for-an-alias-of-another-kind": (
        "defaults: {timeout: &n 9, runs: *n}\n",
        "defaults: {timeout: &n 9, runs: *n}\n",
    ),
    "seconds-by-default": ("defaults: {timeout: '${T=90}'}\n", "defaults: {timeout: '${T=90s}'}\n"),
    "seconds-by-default-plain": ("defaults: {timeout: ${T=90}, runs: 2}\n", "defaults: {timeout: ${T=90s}, runs: 2}\n"),
    "seconds-elsewhere": ("scoring: {timeout: 60}\n", "scoring: {timeout: 60s}\n"),
    "skills-list": ("environment:\n  skills: skills/one  # only\n", "environment:\n  skills: [skills/one]  # only\n"),
    "list-quoted": ("environment: {commands: 'echo hi'}\n", "environment: {commands: ['echo hi']}\n"),
    "list-with-brackets": (
        "environment:\n  commands: test -f a[1] && echo {}, $$\n",
        'environment:\n  commands: ["test -f a[1] && echo {}, $$"]\n',
    ),
    "list-with-quotes": (
        "environment:\n  commands: echo \"a, b\" 'c'\n",
        "environment:\n  commands: ['echo \"a, b\" ''c''']\n",
    ),
    "list-with-placeholder": (
        "environment:\n  commands: echo ${X=1}\n",
        'environment:\n  commands: ["echo ${X=1}"]\n',
    ),
    "list-block": (
        "environment:\n  commands: |\n    echo one\n    echo two\n  env: {A: b}\n",
        "environment:\n  commands:\n  - |\n    echo one\n    echo two\n  env: {A: b}\n",
    ),
    "list-folded-with-indent": (
        "environment:\n  commands: >2-   # why\n      echo one\n    echo two\n",
        "environment:\n  commands:\n  - >2-   # why\n      echo one\n    echo two\n",
    ),
    "list-plain-on-two-lines": (
        "environment:\n  commands: echo one\n    two\n",
        "environment:\n  commands: [echo one\n    two]\n",
    ),
    "list-anchored": (
        "environment: {commands: &c echo}\nagent_environment: {commands: *c}\n",
        "environment: {commands: [&c echo]}\nagent_environment: {commands: [*c]}\n",
    ),
    "artifacts": ("artifacts: {include: '*.txt', exclude: b}\n", "artifacts: {include: ['*.txt'], exclude: [b]}\n"),
    "server": (
        "environment:\n  mcpServers:\n    db:\n      # why\n      command: ./db\n",
        "environment:\n  mcpServers:\n    db:\n      # why\n      type: stdio\n      command: ./db\n",
    ),
    "server-flow": (
        "environment: {mcpServers: {web: {url: 'https://example.invalid'}}}\n",
        "environment: {mcpServers: {web: {type: http, url: 'https://example.invalid'}}}\n",
    ),
    "server-anchored": (
        "environment:\n  mcpServers:\n    a: &s\n      command: x\n    b: *s\n",
        "environment:\n  mcpServers:\n    a: &s\n      type: stdio\n      command: x\n    b: *s\n",
    ),
    "server-merged": (
        "x-base: &base {command: x}\nenvironment:\n  mcpServers:\n    a: {<<: *base, args: [b]}\n",
        "x-base: &base {command: x}\nenvironment:\n  mcpServers:\n    a: {type: stdio, <<: *base, args: [b]}\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_keys_of_the_root(project: ProjectBuilder, run: Run, host: PluginHost, name: str) -> None:
    project.skill("one")
    before, after = (f"# A comment\n{text}{TAIL}" for text in CASES[name])
    project.file("eval.yaml", before)
    meant = document(project, host)
    assert migrated(project, run, before).decode() == after
    assert document(project, host) == meant


STIMULI = {
    "ignored": (
        "category: x  # why\n    prompt: p\n    timeout: 30\n    config: {runs: 1}\n",
        "x-category: x  # why\n    prompt: p\n    x-timeout: 30\n    x-config: {runs: 1}\n",
    ),
    "ignored-twice": ("prompt: p\n    x-runs: 1\n    'runs': 2\n", "prompt: p\n    x-runs: 1\n    'x-x-runs': 2\n"),
    "turns": (
        "turns:\n      - prompt: one\n      - {prompt: 'two', }\n      - three\n",
        "turns:\n      - one\n      - 'two'\n      - three\n",
    ),
    "turns-long": (
        "turns:\n      - prompt: |\n          one\n          more\n      - prompt:\n          two\n",
        "turns:\n      - |\n          one\n          more\n      - two\n",
    ),
    "turns-commented": (
        "turns:\n      - prompt: # why\n          one\n      # between\n      - {prompt: two}  # end\n",
        "turns:\n      -  # why\n          one\n      # between\n      - two  # end\n",
    ),
    "turns-flow": ("turns: [{prompt: one}, {prompt: two}]\n", "turns: [one, two]\n"),
    "rubric": (
        "prompt: p\n    rubric:\n      - Names: the port\n      - plain\n      - [a, b]  # why\n",
        'prompt: p\n    rubric:\n      - "Names: the port"\n      - plain\n      - "[a, b]"  # why\n',
    ),
    "rubric-with-quotes": (
        "prompt: p\n    rubric:\n      - Says \"it's\": 'yes'\n",
        "prompt: p\n    rubric:\n      - 'Says \"it''s\": ''yes'''\n",
    ),
    "rubric-on-lines": (
        "prompt: p\n    rubric:\n      - a: b\n        c: d\n",
        'prompt: p\n    rubric:\n      - "a: b\\n        c: d"\n',
    ),
    "rubric-single": ("prompt: p\n    rubric: all good\n", "prompt: p\n    rubric: [all good]\n"),
    "constraints": (
        "prompt: p\n    constraints: {max_duration: 90, expect_tools: bash}\n",
        "prompt: p\n    constraints: {max_duration: 90s, expect_tools: [bash]}\n",
    ),
}


@pytest.mark.parametrize("name", STIMULI)
def test_keys_of_a_stimulus(project: ProjectBuilder, run: Run, host: PluginHost, name: str) -> None:
    before, after = (f"{STIMULUS}    {text}" for text in STIMULI[name])
    project.file("eval.yaml", before)
    meant = document(project, host)
    assert migrated(project, run, before).decode() == after
    assert document(project, host) == meant


def named(*names: str) -> str:
    stimuli = "".join(
        f"  - name: s{index}\n    prompt: p\n    graders:\n      - type: output-contains\n        name: {name}\n"
        f"        config: {{substring: a}}\n"
        for index, name in enumerate(names)
    )
    return f"stimuli:\n{stimuli}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("looks good",), ("looks-good",)),
        (("'Looks: GOOD!'  # why",), ("'looks-good'  # why",)),
        (('"Ünïcode — x"',), ('"unicode-x"',)),
        (("日本",), ("grader",)),
        (("'2 B'",), ("'2-b'",)),
        (("Null",), ("Null",)),
        (("output-contains x", "Output Contains"), ("output-contains-x", "output-contains-2")),
        (("same", "same", "same"), ("same", "same-2", "same-3")),
        (("Same", "same", "same-2"), ("same-3", "same", "same-2")),
        ((f"{'word ' * 20}x", f"{'word ' * 20}y"), (("word-" * 12)[:-1], f"{'word-' * 11}wor-2")),
    ],
)
def test_names_of_graders_become_slugs_of_their_own(
    project: ProjectBuilder, run: Run, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    if before == after:
        # A plain null is no name at all.
        before, after = tuple(f"'{name}'" for name in before), ("'null'",)
    assert migrated(project, run, named(*before)).decode() == named(*after)


def test_weights_follow_the_names(project: ProjectBuilder, run: Run) -> None:
    weights = "scoring:\n  weights:\n    # Important\n    looks good: 3   # three\n    output-contains: 1\n"
    expected = weights.replace("looks good: 3 ", "looks-good: 3\n    looks-good-2: 3 ")
    made = migrated(project, run, named("looks good", "looks good", "fine") + weights).decode()
    assert made == named("looks-good", "looks-good-2", "fine") + expected


def test_weights_on_one_line(project: ProjectBuilder, run: Run) -> None:
    made = migrated(project, run, named("kept", "kept") + "scoring: {weights: {'kept': 3, output-contains: 1}}\n")
    assert made.decode() == named("kept", "kept-2") + "scoring: {weights: {kept-2: 3, 'kept': 3, output-contains: 1}}\n"


def test_one_name_for_graders_of_a_template_is_no_older_spelling(project: ProjectBuilder, run: Run) -> None:
    project.file("rows.jsonl", '{"a": "x"}\n{"a": "y"}\n')
    text = dedented("""
        stimuli_from:
          file: rows.jsonl
          template:
            prompt: p
            graders:
              - type: output-contains
                name: fits
                config: {substring: "${row.a}"}
    """)
    project.file("eval.yaml", text)
    result = run("migrate", "eval.yaml")
    assert (result.exit_code, result.stdout) == (0, "0 of 1 file changed\n")
    assert result.stderr == ""
    assert (project.root / "eval.yaml").read_text() == text


def test_a_repeated_name_from_a_placeholder_gets_an_end_of_its_own(
    project: ProjectBuilder, run: Run, host: PluginHost
) -> None:
    grader = "- {type: output-contains, name: '${N=fits}', config: {substring: a}}"
    stimuli = "".join(f"  - {{name: s{number}, prompt: p, graders: [\n  {grader[2:]}]}}\n" for number in range(2))
    after = migrated(project, run, f"stimuli:\n{stimuli}").decode()
    assert after.count("name: '${N=fits}'") == 1
    assert after.count("name: '${N=fits}-2'") == 1
    spec = load_eval_spec(project.root / "eval.yaml", host=host, params={"N": "other"})
    assert [stimulus.graders[0].name for stimulus in spec.stimuli] == ["other", "other-2"]
    weighted = migrated(project, run, f"stimuli:\n{stimuli}scoring: {{weights: {{fits: 2}}}}\n").decode()
    assert weighted == f"{after}scoring: {{weights: {{fits-2: 2, fits: 2}}}}\n"


def test_a_name_that_a_placeholder_makes_no_slug_is_left(project: ProjectBuilder, run: Run) -> None:
    grader = "{type: output-contains, name: '${N=It fits}', config: {substring: a}}"
    text = f"stimuli:\n- {{name: s, prompt: p, graders: [{grader}]}}\n"
    project.file("eval.yaml", text)
    result = run("migrate", "eval.yaml")
    assert "grader name 'It fits' is not a slug" in result.stderr
    assert (project.root / "eval.yaml").read_text() == text


def test_a_template_is_rewritten_too(project: ProjectBuilder, run: Run, host: PluginHost) -> None:
    project.file("rows.jsonl", '{"a": "x", "t": 5}\n{"a": "y", "t": 6}\n')
    before = dedented("""
        stimuli_from:
          - file: rows.jsonl
            template:
              name: n-${row.a}
              category: none
              turns: [{prompt: "Say ${row.a}"}]
              constraints: {max_duration: 30}
    """)
    project.file("eval.yaml", before)
    meant = document(project, host)
    after = before.replace("category", "x-category").replace('{prompt: "Say ${row.a}"}', '"Say ${row.a}"')
    assert migrated(project, run, before).decode() == after.replace("30", "30s")
    assert document(project, host) == meant


def test_seconds_from_data_are_left(project: ProjectBuilder, run: Run) -> None:
    project.file("rows.jsonl", '{"t": 5}\n')
    text = "stimuli_from: {file: rows.jsonl, template: {prompt: p, constraints: {max_duration: '${row.t}'}}}\n"
    path = project.file("eval.yaml", text)
    result = run("migrate", "eval.yaml")
    assert "has no unit and is read as seconds" in result.stderr
    assert path.read_text() == text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_line_ends_and_marks_stay(project: ProjectBuilder, run: Run, end: str, mark: bytes) -> None:
    before = (
        "config: {runs: 2}\nenvironment:\n  mcpServers:\n    a:\n      command: x\n  commands: |\n    one\n    two\n"
    )
    after = (
        "defaults: {runs: 2}\nenvironment:\n  mcpServers:\n    a:\n      type: stdio\n      command: x\n"
        "  commands:\n  - |\n    one\n    two\n"
    )
    made = migrated(project, run, mark + (before + TAIL).replace("\n", end).encode())
    assert made == mark + (after + TAIL).replace("\n", end).encode()


def test_only_touched_lines_change(project: ProjectBuilder, run: Run) -> None:
    before = dedented("""
        %YAML 1.2
        ---
        # Odd but legal, and none of it may move.
        name:    "odd"     # aligned
        tags: {  a : b ,c: [ d,e ]  }


        defaults:
            timeout: 30    # four blanks
            runs:   2
        metadata:
           long: >-
             folded
               text

             here
           "quoted": 'it''s'
           ? complex
           : value
           date: 2026-01-02
           yes: no
           \u00e9: \u2028x
        stimuli:
        - name: a
          prompt: |+
            text

        - { name: b, prompt: "p\\tq" }   # end
        ...
    """)
    assert migrated(project, run, before).decode() == before.replace("timeout: 30 ", "timeout: 30s ")
