from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MINIMAL = "stimuli:\n  - {name: a, prompt: p, graders: [{type: completed}]}\n"
# Where the text under test starts, after a spec that is otherwise right.
LINE = MINIMAL.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("tags:\n  debug: yes\n", [], id="YM-1"),
        pytest.param("tags: {level: 1.0}\n", [f"{LINE}:15 coerced-scalar"], id="YM-3"),
        pytest.param("defaults:\n  runs: 1\n  runs: 3\n", [f"{LINE + 2}:3 DUPLICATE-KEY"], id="YM-4"),
        pytest.param("name: !!python/name:os.system\n", [f"{LINE}:7 YAML-UNSAFE-TAG"], id="YM-5"),
        pytest.param("defaults: {timeout: 08}\n", [f"{LINE}:21 bare-duration"], id="YM-7"),
        pytest.param("version: 1\n", [], id="YM-8"),
        pytest.param("tags:\n", [], id="YM-9"),
    ],
)
def test_rows(work: Any, text: str, expected: list[str]) -> None:
    assert work(MINIMAL + text).found == expected


def test_row_values(work: Any) -> None:
    text = "tags: {debug: yes, level: 1.0}\ndefaults: {timeout: 08}\nversion: 1\n"
    spec = work(MINIMAL + text).spec
    assert spec.tags == {"debug": "yes", "level": "1.0"}
    assert spec.defaults.timeout_ms == 8000
    assert spec.version == "1"


@pytest.mark.parametrize("word", [pytest.param("yes", id="YM-2"), "Yes", "no", "on", "OFF", "y", "n"])
def test_yes_is_no_boolean(work: Any, word: str) -> None:
    found = work.stimulus(f"graders:\n  - type: output-contains\n    config: {{substring: x, negate: {word}}}")
    item = found.only("invalid-type")
    assert (item.level, item.line, item.column) == ("error", 6, 40)
    assert item.hint == "write true or false"
    assert item.message == f"negate must be true or false, got '{word}'"
    required = work.stimulus(f"graders:\n  - {{type: completed, required: {word}}}").only("invalid-type")
    assert (required.line, required.column, required.hint) == (5, 37, "write true or false")


@pytest.mark.parametrize((), [pytest.param(id="YM-6")])
def test_an_alias_is_an_independent_copy(work: Any) -> None:
    found = work(
        "stimuli:\n"
        '  - {name: a, prompt: p, environment: {env: &e {A: "1"}}, graders: &g [{type: completed}]}\n'
        "  - {name: b, prompt: p, environment: {env: *e}, graders: *g}\n"
        "  - {name: c, prompt: p, environment: {env: *e}, graders: *g}\n"
    ).clean
    first, *others = found.stimuli
    assert all(other.environment.env == {"A": "1"} for other in others)
    first.environment.env["A"] = "changed"
    first.document["environment"]["env"]["A"] = "changed"
    first.graders[0].config["changed"] = True
    for other in others:
        assert other.environment.env == {"A": "1"}
        assert other.document["environment"]["env"] == {"A": "1"}
        assert other.graders[0].config == {}
    assert found.document["stimuli"][0]["environment"]["env"] == {"A": "1"}


def test_a_shared_environment_by_anchor(work: Any) -> None:
    text = "x-env: &env {commands: [make], env: {A: a}}\nstimuli:\n"
    text += "".join(
        f"  - {{name: {name}, prompt: p, environment: *env, graders: [{{type: completed}}]}}\n" for name in "abc"
    )
    spec = work(text).clean
    assert [stimulus.environment.commands for stimulus in spec.stimuli] == [("make",)] * 3
    spec.stimuli[0].environment.env["A"] = "changed"
    assert spec.stimuli[1].environment.env == {"A": "a"}


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("~", None),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("nULL", "nULL"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("False", False),
        ("010", 10),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        ("1.5.2", "1.5.2"),
        ("--", "--"),
        ("+", "+"),
        (".", "."),
        ("yes", "yes"),
        ("off", "off"),
        ("=", "="),
        ("'5'", "5"),
        ('"5"', "5"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!float 5", 5.0),
        ("!!null ''", None),
        ("!!bool 'true'", True),
    ],
)
def test_core_schema(work: Any, plain: str, value: object) -> None:
    read = work(f"{MINIMAL}metadata:\n  v: {plain}\n").clean.metadata["v"]
    assert read == value
    assert type(read) is type(value)


def test_block_scalars_are_strings(work: Any) -> None:
    assert work(f"{MINIMAL}metadata:\n  v: |-\n    5\n  w: >-\n    true\n").clean.metadata == {"v": "5", "w": "true"}


@pytest.mark.parametrize(
    "number", [".nan", ".inf", "-.INF", "1e999", "9007199254740992", "-9007199254740992", "9" * 5000]
)
@pytest.mark.parametrize("place", ["defaults: {runs: %s}", "scoring: {threshold: %s}", "metadata: {deep: [%s]}"])
def test_numbers_that_are_refused(work: Any, number: str, place: str) -> None:
    assert work(f"{MINIMAL}{place % number}\n").codes == ["invalid-type"]


def test_the_largest_exact_integer(work: Any) -> None:
    assert work(f"{MINIMAL}metadata: {{v: 9007199254740991}}\n").clean.metadata == {"v": 2**53 - 1}


def test_keys_are_their_text(work: Any) -> None:
    spec = work(f"{MINIMAL}metadata: {{on: a, 1: b, true: c, 1.0: d, null: e, ~: f}}\n").clean
    assert spec.metadata == {"on": "a", "1": "b", "true": "c", "1.0": "d", "null": "e", "~": "f"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata: {? [a] : b}\n", [f"{LINE}:14 YAML-COMPLEX-KEY"]),
        ("? {a: b}\n: c\n", [f"{LINE}:3 YAML-COMPLEX-KEY"]),
        ("metadata: {a: 1, 'a': 2}\n", [f"{LINE}:18 DUPLICATE-KEY"]),
        ("metadata: !foo {a: 1}\n", [f"{LINE}:11 YAML-UNSAFE-TAG"]),
        ("metadata: {v: !!binary aGk=}\n", [f"{LINE}:15 YAML-UNSAFE-TAG"]),
        ("metadata: {v: !!timestamp 2024-01-01}\n", [f"{LINE}:15 YAML-UNSAFE-TAG"]),
        ("metadata: {v: !!set {a}}\n", [f"{LINE}:15 YAML-UNSAFE-TAG"]),
        ("metadata: {v: ! x}\n", [f"{LINE}:15 YAML-UNSAFE-TAG"]),
        ("metadata: {v: !!int x}\n", [f"{LINE}:15 YAML-SYNTAX"]),
        ("metadata: {v: !!map x}\n", [f"{LINE}:15 YAML-SYNTAX"]),
        ("metadata: {v: !!str [x]}\n", [f"{LINE}:15 YAML-SYNTAX"]),
        ("metadata: {v: *missing}\n", [f"{LINE}:15 YAML-SYNTAX"]),
        ("metadata: &m {v: *m}\n", [f"{LINE}:18 YAML-LIMIT"]),
        ("metadata: 'a' 'b'\n", [f"{LINE}:15 YAML-SYNTAX"]),
        ("metadata: {v: 'a' 'b'}\n", [f"{LINE}:19 YAML-SYNTAX"]),
        ("metadata:\n\tv: 1\n", [f"{LINE + 1}:1 YAML-SYNTAX"]),
        ("metadata: {v: \x01}\n", [f"{LINE}:15 YAML-SYNTAX"]),
        ("metadata: {v: '\x00'}\n", [f"{LINE}:16 YAML-SYNTAX"]),
        ("---\n", [f"{LINE}:1 MULTIPLE-DOCUMENTS"]),
        ("...\n---\na: b\n", [f"{LINE + 1}:1 MULTIPLE-DOCUMENTS"]),
        ("metadata: [unclosed\n", [f"{LINE + 1}:1 YAML-SYNTAX"]),
        ("metadata: {<<: 5}\n", [f"{LINE}:16 INVALID-TYPE"]),
        ("metadata: {<<: [{a: 1}, b]}\n", [f"{LINE}:25 INVALID-TYPE"]),
    ],
)
def test_what_is_refused(work: Any, text: str, expected: list[str]) -> None:
    assert work(MINIMAL + text).found == expected


def test_findings_of_the_parser_have_pointers(work: Any) -> None:
    assert work(f"{MINIMAL}metadata: {{a: [{{b: 1, b: 2}}]}}\n").only("duplicate-key").pointer == "/metadata/a/0/b"
    assert work(f"{MINIMAL}metadata: {{a/b: [0, !x 1]}}\n").only("yaml-unsafe-tag").pointer == "/metadata/a~1b/1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tags: {[a]: b}\n", [f"{LINE}:8 YAML-COMPLEX-KEY"]),
        ("tags:\n  ? {a: b}\n  : c\n", [f"{LINE + 1}:5 YAML-COMPLEX-KEY"]),
        ("x-a: &a [b]\ntags: {*a : c}\n", [f"{LINE + 1}:8 YAML-COMPLEX-KEY"]),
        ("x-a: &a b\ntags: {*a : c, *a : d}\n", [f"{LINE + 1}:16 DUPLICATE-KEY"]),
        ("x-a: {&a b: c, *a : d}\n", [f"{LINE}:16 DUPLICATE-KEY"]),
    ],
)
def test_keys_that_cannot_be(work: Any, text: str, expected: list[str]) -> None:
    assert work(MINIMAL + text).found == expected


def test_a_duplicate_names_the_first(work: Any) -> None:
    item = work(f"{MINIMAL}name: a\nname: b\n").only("duplicate-key")
    assert item.message == f"duplicate key 'name' (first at line {LINE})"
    (first,) = item.related
    assert (first.line, first.column) == (LINE, 1)


def test_an_unknown_escape_has_a_hint(work: Any) -> None:
    item = work(f'{MINIMAL}description: "a\\d"\n').only("yaml-syntax")
    # libyaml marks the backslash, the parser that PyYAML has without it the letter.
    assert item.line == LINE
    assert item.column in (16, 17)
    assert item.hint == "in double quotes write \\\\ for \\, or use single quotes"
    assert item.message.startswith("YAML syntax error: ")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"\uD83D\uDE00\uDBFF\uDFFF"', "😀\U0010ffff"),
        (r'"\\\ud83d\ude00"', "\\😀"),
        (r"'\ud83d\ude00'", r"\ud83d\ude00"),
        (r"\ud83d\ude00", r"\ud83d\ude00"),
        ("|-\n  \\ud83d\\ude00", r"\ud83d\ude00"),
        (r'"${N=a}\ud83d\ude00${N=b}"', "a😀b"),
        (r'"${N=\ud83d\ude00}"', r"\ud83d\ude00"),
    ],
)
def test_a_pair_of_surrogates_is_one_character_in_double_quotes(work: Any, written: str, value: str) -> None:
    assert work(f"{MINIMAL}description: {written}\n").clean.description == value


def test_a_pair_of_surrogates_in_a_key(work: Any) -> None:
    assert work(f'{MINIMAL}tags: {{"\\ud83d\\ude00": x, level: 1}}\n').only("coerced-scalar").column == 34
    assert work(f'{MINIMAL}tags: {{"\\ud83d\\ude00": x}}\n').clean.tags == {"😀": "x"}


@pytest.mark.parametrize(
    "written", [r"\ud83d", r"\ude00\ud83d", r"\ud83dx\ude00", r"\ud83d\ud83d\ude00", r"\\ud83d\ude00"]
)
def test_a_surrogate_alone_is_an_error_where_it_stands(work: Any, written: str) -> None:
    item = work(f'{MINIMAL}description: "{written}"\n').only("yaml-syntax")
    assert item.line == LINE
    # libyaml marks the digits of the escape.
    assert item.column is not None
    assert 15 < item.column < 16 + len(written)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "%YAML 1.2\n---\n", "\ufeff"])
def test_empty(work: Any, text: str) -> None:
    assert work(text).found == ["1:1 EMPTY-DOCUMENT"]


@pytest.mark.parametrize("text", ["[a]\n", "a\n", "~\n", "'x'\n"])
def test_the_top_is_a_mapping(work: Any, text: str) -> None:
    assert work(text).found == ["1:1 INVALID-TYPE"]


@pytest.mark.parametrize(
    "prefix",
    ["%YAML 1.1\n---\n", "%YAML 1.3\n---\n", "%TAG !! tag:x.org,2024:\n---\n", "# c\n%YAML 2.0\n# d\n---\n", "---\n"],
)
def test_directives_change_nothing(work: Any, prefix: str) -> None:
    assert work(f"{prefix}{MINIMAL}metadata: {{v: !!str 5, w: on}}\n").clean.metadata == {"v": "5", "w": "on"}


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"\xff\xfea\x00", "1:1"),
        (b"\xfe\xff\x00a", "1:1"),
        (b"\xff\xfe\x00\x00", "1:1"),
        (b"\x00\x00\xfe\xff", "1:1"),
        (b"a: b\n\xe2\x82\xac \xff", "2:3"),
        (b"\xc0\xaf", "1:1"),
        (b"\xed\xa0\x80", "1:1"),
    ],
)
def test_encodings(work: Any, data: bytes, position: str) -> None:
    assert work(data).found == [f"{position} YAML-ENCODING"]


def test_the_offset_of_an_invalid_byte(work: Any) -> None:
    assert work(b"a: b\n\xff").only("yaml-encoding").message == "not valid UTF-8 at byte 5"


def test_a_byte_order_mark_and_line_ends(work: Any) -> None:
    text = f"\ufeff{MINIMAL}area: x\n"
    assert work(text).found == [f"{LINE}:1 foreign-key"]
    assert work(text.replace("\n", "\r\n")).found == [f"{LINE}:1 foreign-key"]
    assert work(text.replace("\n", "\r")).found == [f"{LINE}:1 foreign-key"]


def test_marks_that_only_yaml_1_1_took_for_line_ends(work: Any) -> None:
    spec = work(f"{MINIMAL}description: a\x85b\u2028c\u2029d\narea: x\n")
    assert spec.found == [f"{LINE + 1}:1 foreign-key"]
    assert spec.spec.description == "a\x85b\u2028c\u2029d"


def test_columns_count_code_points(work: Any) -> None:
    assert work(f"{MINIMAL}metadata: {{'😀𝕏é': !x 1}}\n").found == [f"{LINE}:19 YAML-UNSAFE-TAG"]
    assert work(f"{MINIMAL}metadata: {{'😀${{P=𝕏}}': a, 'b': !x 1}}\n").found == [f"{LINE}:31 YAML-UNSAFE-TAG"]


def test_merge_keys(work: Any) -> None:
    text = "x-a: &a {k: 1, l: 1}\nx-b: &b {l: 2, m: 2}\n"
    text += "metadata:\n  one: {<<: *a, k: 9}\n  two: {<<: [*a, *b], n: 3}\n  text: {'<<': 1}\n"
    assert work(MINIMAL + text).clean.metadata == {
        "one": {"k": 9, "l": 1},
        "two": {"n": 3, "k": 1, "l": 1, "m": 2},
        "text": {"<<": 1},
    }


def test_an_alias_as_key(work: Any) -> None:
    assert work(f"{MINIMAL}x-k: &k word\nmetadata: {{*k : 1}}\n").clean.metadata == {"word": 1}


def test_findings_in_aliased_content_point_to_the_anchor(work: Any) -> None:
    text = f"x-d: &d {{rums: 1}}\n{MINIMAL}defaults: *d\n"
    assert work(text).found == ["1:10 UNKNOWN-KEY"]


def nested(depth: int) -> str:
    return MINIMAL + "metadata: {a: " + "[" * depth + "]" * depth + "}\n"


def test_depth(work: Any) -> None:
    # The root and the metadata are two levels.
    assert work(nested(62)).found == []
    assert work(nested(63)).found == [f"{LINE}:{15 + 62} YAML-LIMIT"]
    below = MINIMAL + "x-a: &a " + "[" * 40 + "]" * 40 + "\nmetadata: {a: " + "[" * 23 + "*a" + "]" * 23 + "}\n"
    assert work(below).codes == ["yaml-limit"]


def test_size_after_alias_expansion(work: Any) -> None:
    def doubled(times: int) -> str:
        lines = ["x-0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"]
        lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, times)]
        return "".join(lines) + MINIMAL

    # 11, 111, 1,111, ... nodes: a hundred thousand in the fifth line, more than a million with the sixth.
    assert work(doubled(5)).found == []
    laughs = work(doubled(30)).diagnostics
    assert [(item.code, item.line) for item in laughs] == [("yaml-limit", 6)]


def test_size_of_the_file(work: Any) -> None:
    text = MINIMAL + "#" * (4 * 2**20 - len(MINIMAL))
    assert work(text).found == []
    item = work(text + "#").only("file-too-large")
    assert item.message == "file has 4194305 bytes, at most 4194304 are allowed"


def test_a_missing_file(work: Any, tmp_path: Any) -> None:
    from vally.spec import read_eval_spec

    item = read_eval_spec(tmp_path / "none.yaml", host=work.host).diagnostics[0]
    assert (item.code, item.line) == ("file-not-found", None)
    assert item.message.endswith("none.yaml: no such file or directory")
    assert read_eval_spec(tmp_path, host=work.host).diagnostics[0].code == "file-not-found"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{MINIMAL}description: '{'${a=' * 100_000}'\n", id="placeholders without an end"),
        pytest.param(MINIMAL + "".join(f"scorin{n}: 1\n" for n in range(20_000)), id="misspelt keys"),
        pytest.param(
            f"{MINIMAL}scoring:\n  weights:\n" + "".join(f"    k{n}: 1\n" for n in range(20_000)), id="weights"
        ),
        pytest.param(
            f"stimuli:\n  - {{name: a, prompt: p, graders: [{{type: '{'a' * 500_000}'}}]}}\n", id="a long word"
        ),
    ],
)
def test_long_files_take_time_in_proportion(work: Any, text: str) -> None:
    # Each of them took minutes when every mistake was compared with everything.
    found = work(text)
    assert len(found.diagnostics) <= 201


def test_at_most_200_findings_per_file(work: Any) -> None:
    text = "".join(f"other{n}: x\n" for n in range(300))
    found = work(text).diagnostics
    assert len(found) == 201
    assert found[0].line == 1
    last = found[-1]
    assert (last.code, last.level, last.message) == ("more-diagnostics", "info", "101 more diagnostics not shown")
    # The error, although it comes last, is among those shown.
    assert [item.code for item in found if item.level == "error"] == ["no-stimuli"]


@pytest.mark.parametrize("item", ["{}", "1", "[]", "{name: a}", "{name: a, prompt: p, x: 1}"])
def test_a_list_of_nothing_but_mistakes_is_not_read_to_its_end(
    work: Any, monkeypatch: pytest.MonkeyPatch, item: str
) -> None:
    monkeypatch.setattr("vally.spec.diagnostics._COLLECTED_PER_FILE", 300)
    found = work("stimuli: [" + f"{item}, " * 2000 + "1]").diagnostics
    assert len(found) == 201
    assert {item.level for item in found[:-1]} == {"error"}
    assert found[0].column - len("stimuli: [") in (1, item.find("x") + 1)
    assert 100 < int(found[-1].message.split()[0]) < 1000


@pytest.mark.parametrize(
    "field",
    [
        "graders: [%s]",
        "graders: [{type: completed}, %s]",
        "turns: [%s]",
        "attachments: [%s]",
        "attachments: ['a', %s]",
        "environment: {skills: [%s]}",
        "environment: {commands: [%s]}",
        "environment: {files: [{src: a}, %s]}",
        "tags: {a: [%s]}",
    ],
)
def test_long_lists_of_mistakes_are_not_read_to_their_ends(
    work: Any, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    monkeypatch.setattr("vally.spec.diagnostics._COLLECTED_PER_FILE", 300)
    prompt = "" if field.startswith("turns") else "prompt: p, "
    found = work(f"stimuli: [{{name: a, {prompt}{field % ', '.join(['[]'] * 2000)}}}]").diagnostics
    assert len(found) == 201
    assert {item.level for item in found[:-1]} == {"error"}
    assert 100 < int(found[-1].message.split()[0]) < 500


WORDS = re.findall(
    r"\S+",
    """
    stimuli: prompt: name: graders: type: config: environment: files: env: git: mcpServers: turns: defaults: timeout:
    scoring: weights: stimuli_from: rubric: - & * &a *a <<: !!str !x " ' | > # --- ... %YAML ${X} $${X= } { [ ] , \\
    1 true ~
    """,
)
MARKS = ["\n", "\n  ", "\n    - ", " ", "\t", "\x85", "\u2028", "\ufdd0", "\0", "\ud7ff", "😀"]
FRAGMENTS = st.sampled_from([*WORDS, *MARKS])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.lists(FRAGMENTS, max_size=40).map(lambda parts: "".join(parts).encode()), st.binary(max_size=200)))
def test_any_bytes_give_a_value_or_findings(work: Any, data: bytes) -> None:
    found = work(data)
    assert found.loaded.spec is not None or any(item.level == "error" for item in found.diagnostics)
    for item in found.diagnostics:
        assert "\n" not in item.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**54) | st.floats() | st.text(max_size=8) | st.just("${X}"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
# A key of YAML has at most 1024 characters, as it is written.
JSON_KEYS = st.text(max_size=50)
EXACT = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e30, 1e30) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(JSON_KEYS, inner),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=EXACT, indent=st.sampled_from([None, 0, 2]))
def test_json_is_yaml(work: Any, value: object, indent: int | None) -> None:
    stimulus = {"name": "a", "prompt": "p", "graders": [{"type": "completed"}]}
    text = json.dumps({"stimuli": [stimulus], "metadata": {"x": value}}, indent=indent)
    # YAML allows the character DEL only as an escape, which JSON does not ask for.
    text = text.replace("\x7f", r"\u007f").replace("${", r"\u0024{")
    assert work(text).clean.metadata == {"x": value}


KEYS = [
    "name",
    "prompt",
    "turns",
    "environment",
    "agent_environment",
    "grading_environment",
    "tags",
    "graders",
    "rubric",
]
KEYS += ["constraints", "artifacts", "attachments", "simulation", "golden_patch", "golden_command", "golden_trajectory"]
ENVIRONMENT = st.dictionaries(
    st.sampled_from(["skills", "files", "commands", "commandTimeout", "git", "mcpServers", "env"]), JSON, max_size=3
)
STIMULUS = st.dictionaries(st.sampled_from(KEYS), JSON | ENVIRONMENT, max_size=6)
ROOT = st.dictionaries(
    st.sampled_from(
        ["name", "defaults", "config", "environment", "graders", "artifacts", "stimuli_from", "scoring", "tags", "type"]
    ),
    JSON | ENVIRONMENT | st.fixed_dictionaries({"file": JSON, "template": STIMULUS}),
    max_size=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROOT, st.lists(STIMULUS, max_size=3))
def test_any_shape_gives_findings_and_no_exception(work: Any, root: dict[str, Any], stimuli: list[Any]) -> None:
    import yaml

    text = yaml.safe_dump({**root, "stimuli": stimuli}, allow_unicode=True)
    for item in work(text, params={"X": "1"}).diagnostics:
        assert "\n" not in item.message
        assert item.line is not None or item.code == "more-diagnostics"


@pytest.mark.parametrize("opening", ["[", "{", "[{a: ", "- ", "? "])
def test_nesting_without_an_end_is_a_limit(work: Any, opening: str) -> None:
    assert work(f"metadata:\n  {opening * 20_000}\n").codes == ["yaml-limit"]
