"""How the JSON of a file is laid out; everything that reads such files tells alike."""

from __future__ import annotations

import io

import pytest

from vally import ReadProblem, read_documents
from vally.run.json_layout import look_at

OBJECTS = '{"a": 1}\n{"a": 2}\n'


@pytest.mark.parametrize(
    ("text", "records", "problems"),
    [
        ("", [], 0),
        ("\n \n", [], 0),
        (OBJECTS, [1, 2], 0),
        (f"\ufeff{OBJECTS}", [1, 2], 0),
        ("\n\n" + OBJECTS.replace("\n", "\r\n"), [1, 2], 0),
        ('{"a": 1', [], 1),
        ('{"a": \n1}', [1], 0),
        ('{\n "a": 1\n}\n', [1], 0),
        ('[{"a": 1}, {"a": 2}]', [1, 2], 0),
        ('\n[\n{"a": 1},\n{"a": 2}, 3\n]\n', [1, 2], 1),
        ('[1]\n{"a": 1}\n', [1], 1),
        ('broken\n{"a": 1}\n', [1], 1),
        ('{"a": \n{"a": 1}\n', [1], 1),
        ("[]", [], 0),
    ],
)
def test_records_of_any_layout(text: str, records: list[int], problems: int) -> None:
    found: list[ReadProblem] = []
    read = list(read_documents(io.BytesIO(text.encode()), found))
    assert [record["a"] for record in read] == records
    assert len(found) == problems


def test_a_look_from_where_the_file_is() -> None:
    file = io.BytesIO(b'left out\n{"a":\n1}')
    file.readline()
    assert look_at(file) == ([{"a": 1}], None)
    assert look_at(io.BytesIO(b'x\n{"a": 1}\n{"a": 2}\n')) == (None, {"a": 1})
