from __future__ import annotations

import json
from typing import Any

import pytest

CSV = "id,question,answer,tier\n1,What?,One,smoke\n2,Why?,Two,smoke\n3,Who?,Three,live\n"
SPEC = """stimuli_from:
  file: cases.csv
  where: {tier: [smoke, full]}
  template:
    name: qa-${row.id}
    prompt: ${row.question}
    tags: {tier: "${row.tier}"}
    graders:
      - type: output-contains
        config: {substring: "${row.answer}"}
"""
GRADED = "graders: [{type: completed}]"


def template(work: Any, keys: str, *rows: Any, name: str = "cases.jsonl", **options: Any) -> Any:
    """Load a spec whose template, in line 4, has these keys, over JSON rows."""
    work.write(name, "".join(f"{json.dumps(row)}\n" for row in rows))
    return work(f"stimuli_from:\n  file: {name}\n  template:\n    {{{keys}}}\n", **options)


@pytest.mark.parametrize((), [pytest.param(id="SF-1")])
def test_csv(work: Any) -> None:
    work.write("cases.csv", CSV)
    first, second = work(SPEC).clean.stimuli
    assert (first.name, first.prompt, first.tags) == ("qa-1", "What?", {"tier": "smoke"})
    assert first.graders[0].config == {"substring": "One"}
    assert first.source == {"file": "cases.csv", "row": 1}
    assert first.document["source"] == {"file": "cases.csv", "row": 1}
    assert (second.name, second.source) == ("qa-2", {"file": "cases.csv", "row": 2})


@pytest.mark.parametrize((), [pytest.param(id="SF-2")])
def test_a_list_as_value(work: Any) -> None:
    found = template(work, f"prompt: p, tags: {{area: ${{row.tags}}}}, {GRADED}", {"tags": ["a", "b"]})
    assert found.clean.stimuli[0].tags == {"area": ("a", "b")}


@pytest.mark.parametrize((), [pytest.param(id="SF-3")])
def test_a_list_inside_a_text(work: Any) -> None:
    found = template(work, f"prompt: 'Tags ${{row.tags}}', {GRADED}", {"tags": ["a", "b"]})
    assert found.found == ["4:14 ROW-VALUE-NOT-SCALAR"]
    item = found.diagnostics[0]
    assert item.message == "column 'tags' of row 1 is not a scalar"
    assert [(note.file, note.line) for note in item.related] == [("cases.jsonl", 1)]


@pytest.mark.parametrize((), [pytest.param(id="SF-4")])
def test_an_unknown_column(work: Any) -> None:
    found = template(work, f"prompt: '${{row.qestion}}', {GRADED}", {"question": "q"}, {"question": "r"})
    assert found.found == ["4:14 UNKNOWN-COLUMN"]
    item = found.diagnostics[0]
    assert item.message == "no column 'qestion' in cases.jsonl"
    assert item.hint == "did you mean 'question'?"


@pytest.mark.parametrize((), [pytest.param(id="SF-5")])
def test_rows_are_data(work: Any) -> None:
    work.write("cases.csv", CSV.replace("What?", "${HOME} $${X} ${row.id}"))
    found = work(SPEC, params={"HOME": "/h", "X": "x"}, environ={"HOME": "/h"})
    assert found.clean.stimuli[0].prompt == "${HOME} $${X} ${row.id}"


@pytest.mark.parametrize((), [pytest.param(id="SF-6")])
def test_default_names(work: Any) -> None:
    found = template(work, f"prompt: p, {GRADED}", *({} for _ in range(12)))
    assert [stimulus.name for stimulus in found.clean.stimuli] == [f"cases-{n:02}" for n in range(1, 13)]


@pytest.mark.parametrize((), [pytest.param(id="SF-7")])
def test_names_are_unique(work: Any) -> None:
    work.write("cases.csv", CSV.replace("2,Why", "1,Why"))
    found = work(SPEC)
    assert found.found == ["5:11 DUPLICATE-STIMULUS-NAME"]
    assert ("cases.csv", 3) in [(note.file, note.line) for note in found.diagnostics[0].related]


@pytest.mark.parametrize((), [pytest.param(id="SF-8")])
def test_a_number_in_quotes(work: Any) -> None:
    config = 'graders: [{type: output-contains, config: {substring: "${row.answer}"}}]'
    found = template(work, f"prompt: p, {config}", {"answer": 42})
    assert found.clean.stimuli[0].graders[0].config == {"substring": "42"}
    plain = template(work, f"prompt: p, {config}".replace('"', ""), {"answer": 42})
    assert plain.codes == ["invalid-grader-config"]


@pytest.mark.parametrize((), [pytest.param(id="SF-9")])
def test_a_number_in_a_cell(work: Any) -> None:
    work.write("cases.csv", "x\n5\ntrue\n~\n")
    text = (
        "stimuli_from:\n  file: cases.csv\n  template: {prompt: p, graders: "
        "[{type: output-contains, config: {substring: ${row.x}}}]}\n"
    )
    found = work(text).clean
    assert [stimulus.graders[0].config["substring"] for stimulus in found.stimuli] == ["5", "true", "~"]


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        ("${row.v}", 5, 5),
        ("${row.v}", 1.5, 1.5),
        ("${row.v}", True, True),
        ("${row.v}", None, None),
        ("${row.v}", "010", "010"),
        ("${row.v}", "", ""),
        ("${row.v}", {"a": [1, {"b": "~"}]}, {"a": [1, {"b": "~"}]}),
        ("${row.v.a.b-c}", {"a": {"b-c": 7}}, 7),
        ("'${row.v}'", 1e21, "1e+21"),
        ("'${row.v}'", 1.0, "1"),
        ("'${row.v}'", True, "true"),
        ("'${row.v}'", None, ""),
        ("x${row.v}", 5, "x5"),
        ("${row.v}${row.v}", 5, "55"),
        ("${row_number}", 0, 1),
        ("'${row_number}'", 0, "1"),
        ("$${row.v}", 0, "${row.v}"),
        ("${row.w=dflt}", 0, "dflt"),
        ("'${row.w=}'", 0, ""),
        ("${P=p}${row.v}", 5, "p5"),
        ("${row.v} ${P=p}", 5, "5 p"),
        ("|-\n        ${row.v}", 5, "5"),
    ],
)
def test_values(work: Any, written: str, value: object, expected: object) -> None:
    work.write("cases.jsonl", json.dumps({"v": value}) + "\n")
    text = (
        "stimuli_from:\n  file: cases.jsonl\n  template:\n    prompt: p\n    golden_trajectory:\n      inline:\n"
        f"       v: {written}\n    graders: [{{type: completed}}]\n"
    )
    found = work(text)
    assert found.clean.stimuli[0].golden_trajectory == {"inline": {"v": expected}}
    assert type(found.stimulus.golden_trajectory["inline"]["v"]) is type(expected)


def test_a_parameter_of_that_name_loses(work: Any) -> None:
    found = template(work, f"prompt: 'n${{row_number}}', {GRADED}", {}, params={"row_number": "9"})
    assert found.clean.stimuli[0].prompt == "n1"


def test_a_column_that_a_row_lacks(work: Any) -> None:
    found = template(work, f"prompt: '${{row.q}}', {GRADED}", {"q": "a"}, {"x": 1}, {"q": "c"})
    assert found.found == ["4:14 MISSING-COLUMN-VALUE"]
    assert found.diagnostics[0].message == "row 2 of cases.jsonl has no value for 'q'"
    assert [stimulus.name for stimulus in found.spec.stimuli] == ["cases-1", "cases-3"]
    nested = template(work, f"prompt: '${{row.q.a}}', {GRADED}", {"q": {"a": "x"}}, {"q": 5})
    assert nested.codes == ["missing-column-value"]


def test_selection(work: Any) -> None:
    work.write("cases.jsonl", "".join(f'{{"n": {n}, "odd": {str(n % 2 == 1).lower()}}}\n\n' for n in range(1, 11)))
    text = (
        "stimuli_from:\n  file: cases.jsonl\n  where: {odd: 'true'}\n  limit: 3\n"
        f"  template: {{name: 'n${{row.n}}', prompt: p, {GRADED}}}\n"
    )
    found = work(text).clean
    assert [(stimulus.name, stimulus.source["row"]) for stimulus in found.stimuli] == [("n1", 1), ("n3", 3), ("n5", 5)]


def test_order_and_several_files(work: Any) -> None:
    work.write("a.yaml", "- {q: 1}\n- {q: 2}\n")
    work.write("b.json", '[{"q": "x"}]')
    work.write("c.txt", "q\tr\n3\t4\n")
    found = work(
        "stimuli_from:\n"
        f"  - {{file: a.yaml, template: {{prompt: 'a${{row.q}}', {GRADED}}}}}\n"
        f"  - {{file: b.json, template: {{prompt: 'b${{row.q}}', {GRADED}}}}}\n"
        f"  - {{file: c.txt, format: csv, delimiter: \"\\t\", template: {{prompt: 'c${{row.r}}', {GRADED}}}}}\n"
        f"stimuli:\n  - {{name: first, prompt: p, {GRADED}}}\n"
    ).clean
    assert [stimulus.prompt for stimulus in found.stimuli] == ["p", "a1", "a2", "bx", "c4"]
    assert [stimulus.name for stimulus in found.stimuli] == ["first", "a-1", "a-2", "b-1", "c-1"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("d.jsonl", '{"a": 1}\n[1]\n', "d.jsonl:2: a row must be a JSON object"),
        ("d.jsonl", '{"a": 1}\n{"a": \n', "d.jsonl:2: Expecting value"),
        ("d.jsonl", '{"a": NaN}\n', "d.jsonl:1: NaN is not JSON"),
        ("d.jsonl", '{"a": 1, "a": 2}\n', "d.jsonl:1: duplicate key 'a'"),
        ("d.jsonl", '{"a": 9007199254740993}\n', "d.jsonl:1: a number is too large to be exact"),
        ("d.jsonl", "[" * 100_000 + "\n", "d.jsonl:1: nested too deeply"),
        ("d.csv", "a,b\n1\n", "d.csv:2: 1 cells, the header has 2"),
        ("d.csv", "a,b\n1,2\n\n1,2,3\n", "d.csv:4: 3 cells, the header has 2"),
        ("d.csv", "a,a\n", "d.csv:1: column 'a' occurs twice"),
        ("d.csv", "a,\n", "d.csv:1: column names must not be empty"),
        ("d.csv", "", "d.csv:1: there is no header line"),
        ("d.csv", 'a\n"x\ny"\n"z', "d.csv:4: unexpected end of data"),
        ("d.yaml", "- {a: 1}\n- b\n", "d.yaml:2: a row must be a mapping"),
        ("d.yaml", "a: 1\n", "d.yaml:1: the file must be a list of mappings"),
        ("d.yaml", "- {a: 1, a: 2}\n", "d.yaml:1: duplicate key 'a' (first at line 1)"),
        ("d.yaml", "- {a: .nan}\n", "d.yaml:1: a must be a number between"),
    ],
)
def test_bad_rows(work: Any, name: str, content: str, expected: str) -> None:
    work.write(name, content)
    found = work(f"stimuli_from:\n  file: {name}\n  template: {{prompt: p, {GRADED}}}\n")
    assert found.found == ["2:9 INVALID-DATA-ROW"]
    item = found.diagnostics[0]
    assert item.message.startswith(expected)
    assert [note.file for note in item.related] == [name]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("file: none.jsonl, template: {prompt: p}", ["1:22 FILE-NOT-FOUND"]),
        ("file: data, template: {prompt: p}", ["1:22 INVALID-VALUE"]),
        ("file: rows.jsonl", ["1:15 MISSING-KEY"]),
        ("template: {prompt: p}", ["1:15 MISSING-KEY"]),
        ("file: rows.jsonl, template: x", ["1:44 INVALID-TYPE"]),
        ("file: rows.jsonl, template: {}", ["1:44 MISSING-PROMPT"]),
        (
            "file: rows.jsonl, template: {promt: p}",
            ["1:44 MISSING-PROMPT", "1:45 UNKNOWN-STIMULUS-FIELD"],
        ),
        ("file: empty.jsonl, template: {prompt: p}", ["1:22 EMPTY-DATA"]),
        ("file: empty.jsonl, template: {prompt: '${row.a}'}", ["1:22 EMPTY-DATA"]),
        (
            "file: rows.jsonl, where: {a: '2'}, template: {prompt: '${row.b}'}",
            ["1:22 EMPTY-DATA", "1:70 UNKNOWN-COLUMN"],
        ),
        ("file: rows.jsonl, where: {a: '2'}, template: {prompt: p}", ["1:22 EMPTY-DATA"]),
        ("file: rows.jsonl, limit: 0, template: {prompt: p}", ["1:41 INVALID-VALUE"]),
        ("file: rows.jsonl, format: xml, template: {prompt: p}", ["1:42 INVALID-VALUE"]),
        ("file: rows.jsonl, delimiter: ab, template: {prompt: p}", ["1:45 INVALID-VALUE"]),
        ("file: rows.jsonl, delimiter: ';', template: {prompt: p}", ["1:45 ignored-key"]),
        ("file: rows.jsonl, where: [a], template: {prompt: p}", ["1:41 INVALID-TYPE"]),
        ("file: rows.jsonl, rows: 3, template: {prompt: p}", ["1:34 UNKNOWN-KEY"]),
        ("file: bad.jsonl, template: {prompt: p}", ["1:3 YAML-ENCODING"]),
    ],
)
def test_what_is_refused(work: Any, keys: str, expected: list[str]) -> None:
    work.write("rows.jsonl", '{"a": 1}\n')
    work.write("empty.jsonl", "\n")
    work.write("bad.jsonl", b'{"\xff": 1}')
    work.write("data")
    found = [item for item in work(f"stimuli_from: {{{keys}}}\n").found if "no-graders" not in item]
    assert found == expected


def test_findings_in_a_template_are_reported_once(work: Any) -> None:
    found = template(work, f"prompt: p, promt: q, {GRADED}", {}, {}, {})
    assert found.found == ["4:17 UNKNOWN-STIMULUS-FIELD"]


def test_the_limit_of_rows(work: Any) -> None:
    work.write("cases.jsonl", "{}\n" * 10_001)
    text = f"stimuli_from:\n  file: cases.jsonl\n  template: {{prompt: p, {GRADED}}}\n"
    item = work(text).only("too-many-rows")
    assert (item.line, item.column) == (2, 9)
    assert item.message == "cases.jsonl yields 10001 rows, at most 10000 are allowed"
    assert len(work(f"{text}  limit: 20\n").clean.stimuli) == 20


def _rows_of(item: Any) -> list[tuple[str | None, int | None, str]]:
    return [(note.file, note.line, note.message) for note in item.related]


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("prompt: '${row.a}', graders: [{type: completed}]", "invalid-value"),
        ("prompt: p, tags: {'a=b': '${row.a}x'}, graders: [{type: completed}]", "invalid-value"),
        ("prompt: p, graders: [{type: output-contains, config: {substring: '${row.a}'}}]", "invalid-grader-config"),
        ("prompt: p, graders: [{type: '${row.b}'}]", "unknown-grader-type"),
        ("prompt: p, environment: {files: [{src: '${row.b}', dest: x}]}, graders: []", "environment-file-not-found"),
        ("prompt: p, golden_patch: {inline: '${row.b}'}, graders: []", "invalid-golden-input"),
    ],
)
def test_what_is_wrong_with_a_filled_template_names_its_rows(work: Any, keys: str, code: str) -> None:
    rows = [{"a": "", "b": "none"}, {"a": "", "b": "none"}]
    item = template(work, keys, *rows).only(code)
    assert _rows_of(item) == [("cases.jsonl", 1, "row 1"), ("cases.jsonl", 2, "row 2")]


def test_of_many_wrong_rows_some_are_named(work: Any) -> None:
    item = template(work, f"prompt: '${{row.a}}', {GRADED}", *({"a": ""} for _ in range(40))).only("invalid-value")
    assert [note.line for note in item.related] == list(range(1, 11))


def test_a_placeholder_of_a_row_is_pointed_to(work: Any) -> None:
    keys = "prompt: p, tags: {x: '${row.x}', y: ['${row.t}']}, graders: [{type: completed}]"
    found = template(work, keys, {"t": []})
    assert [(item.code, item.pointer) for item in found.diagnostics] == [
        ("unknown-column", "/stimuli_from/template/tags/x")
    ]
    found = template(work, keys, {"t": [], "x": ""})
    assert found.only("row-value-not-scalar").pointer == "/stimuli_from/template/tags/y/0"


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("{teir: smoke}", "no row has a column 'teir', did you mean 'tier'?"),
        ("{zzz: smoke}", "no row has a column 'zzz'"),
        ("{tier: none}", None),
    ],
)
def test_a_filter_by_a_column_that_is_not_there(work: Any, where: str, hint: str | None) -> None:
    work.write("cases.csv", CSV)
    assert work(SPEC.replace("{tier: [smoke, full]}", where)).only("empty-data").hint == hint


def test_a_directory_is_no_data(work: Any) -> None:
    (work.root / "cases.csv").mkdir()
    assert work(SPEC).only("file-not-found").message == "cannot read cases.csv: it is not a regular file"


@pytest.mark.parametrize("value", ["[1e400]", "[[12345678901234567890]]", '{"a": [1e400]}'])
def test_numbers_inside_lists_must_be_exact(work: Any, value: str) -> None:
    work.write("cases.jsonl", f'{{"x": {value}}}\n')
    found = work(f"stimuli_from:\n  file: cases.jsonl\n  template: {{prompt: p, {GRADED}}}\n")
    assert found.codes == ["invalid-data-row"]
