from __future__ import annotations

from typing import Any

import pytest

from vally.spec import matches_filter


@pytest.mark.parametrize(
    ("tags", "wanted", "expected"),
    [
        pytest.param({"priority": "p0", "area": "auth"}, {"priority": ("p0", "p1")}, True, id="TG-1"),
        pytest.param({"priority": "p0", "area": "auth"}, {"priority": ("p0",), "area": ("net",)}, False, id="TG-2"),
        pytest.param({"area": ("auth", "net")}, {"area": ("net",)}, True, id="TG-3"),
        pytest.param({}, {"area": ("net",)}, False, id="TG-4"),
        pytest.param({}, {}, True, id="TG-5"),
        pytest.param({"level": "1"}, {"level": ("1",)}, True, id="TG-6"),
        pytest.param({"area": "Auth"}, {"area": ("auth",)}, False, id="TG-7"),
        ({"area": "auth"}, {"area": ("!net",)}, False),
        ({"area": "!net"}, {"area": ("!net",)}, True),
        ({"area": "auth"}, {"area": ()}, False),
    ],
)
def test_matching(tags: Any, wanted: Any, expected: bool) -> None:
    assert matches_filter(tags, wanted) is expected


def test_a_number_in_a_filter(work: Any) -> None:
    # TG-6, in a suite.
    project = work.project('suites:\n  s: {filter: {level: 1, area: ["a", true]}}\n')
    assert [(item.code, item.line, item.column) for item in project.diagnostics] == [
        ("coerced-scalar", 2, 23),
        ("coerced-scalar", 2, 38),
    ]
    assert project.suites["s"].filter == {"level": ("1",), "area": ("a", "true")}
    assert matches_filter({"level": "1", "area": "true"}, project.suites["s"].filter)


@pytest.mark.parametrize(
    ("text", "tags", "found"),
    [
        ("{a: x, b: [y, z]}", {"a": "x", "b": ("y", "z")}, []),
        ("{a: [], b: ~}", {}, []),
        ("{a: '', b: 'any = text, really'}", {"a": "", "b": "any = text, really"}, []),
        ("{x-free: a}", {"x-free": "a"}, []),
        ("{a: 1, b: [true]}", {"a": "1", "b": ("true",)}, ["3:11 coerced-scalar", "3:18 coerced-scalar"]),
        ("{'a=b': x}", {}, ["3:8 INVALID-VALUE"]),
        ("{'a,b': x}", {}, ["3:8 INVALID-VALUE"]),
        ("{'': x}", {}, ["3:8 INVALID-VALUE"]),
        ("{a: {b: c}}", {}, ["3:11 INVALID-TYPE"]),
        ("{a: [[b]]}", {}, ["3:12 INVALID-TYPE"]),
        ("[a]", {}, ["3:7 INVALID-TYPE"]),
    ],
)
def test_tags_of_a_spec(work: Any, text: str, tags: Any, found: list[str]) -> None:
    read = work(f"stimuli:\n  - {{name: a, prompt: p, graders: [{{type: completed}}]}}\ntags: {text}\n")
    assert read.found == found
    assert read.spec.tags == tags


def test_what_has_a_bad_key_is_checked_all_the_same(work: Any) -> None:
    found = work.stimulus("tags: {'a=b': [{}]}\nenvironment: {env: {'A B': []}}\ngraders: [{type: completed}]")
    assert found.found == [
        "4:12 INVALID-VALUE",
        "4:20 INVALID-TYPE",
        "5:25 INVALID-VALUE",
        "5:32 INVALID-TYPE",
    ]
