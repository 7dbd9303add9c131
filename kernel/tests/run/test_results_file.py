"""`results.jsonl`: appended line by line, read back however it ended."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from vally.run.results_file import (
    ReadProblem,
    ResultsFile,
    ResultsWriteError,
    index_results,
    problem_lines,
    read_documents,
    read_lines,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX limits and signals")


def _line(item: str, **fields: Any) -> bytes:
    return json.dumps({"type": "trial-result", "itemId": item, **fields}).encode() + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def test_lines_are_appended(path: Path) -> None:
    with ResultsFile(path) as file:
        file.append(b"1\n")
        assert path.read_bytes() == b"1\n"
        file.append(b"2\n")
    with ResultsFile(path) as file:
        file.append(b"3\n")
    assert path.read_bytes() == b"1\n2\n3\n"


def test_closing_twice_is_fine(path: Path) -> None:
    file = ResultsFile(path)
    file.close()
    file.close()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"{}\n", b"{}\n"),
        (b'{}\n{"a"', b"{}\n"),
        (b'{"torn', b""),
        (b'{}\n{"a":1}', b'{}\n{"a":1}\n'),
        (b"{}\n" + b'{"x":"' + b"y" * 300_000, b"{}\n"),
        (b'{"x":"' + b"y" * 300_000 + b'"}', b'{"x":"' + b"y" * 300_000 + b'"}\n'),
    ],
)
def test_a_torn_last_line_is_repaired_before_appending(path: Path, before: bytes, after: bytes) -> None:
    path.write_bytes(before)
    with ResultsFile(path) as file:
        file.append(b"{}\n")
    assert path.read_bytes() == after + b"{}\n"


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ResultsWriteError) as caught:
        ResultsFile(tmp_path / "missing" / "results.jsonl")
    assert caught.value.code == "results-write-failed"
    assert "results.jsonl" in caught.value.message
    assert caught.value.hints


@POSIX
def test_a_full_disk_leaves_complete_lines(path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from vally.run.results_file import ResultsFile, ResultsWriteError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "file = ResultsFile(Path(sys.argv[1]))\n"
        "file.append(b'x' * 599 + b'\\n')\n"
        "try:\n"
        "    file.append(b'y' * 599 + b'\\n')\n"
        "except ResultsWriteError as error:\n"
        "    file.append(b'z\\n')\n"
        "    print(error.message)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout.startswith(f"cannot write {path}: ")
    assert path.read_bytes() == b"x" * 599 + b"\nz\n"


@POSIX
def test_a_killed_writer_leaves_every_line_it_finished(path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from vally.run.results_file import ResultsFile\n"
        "file = ResultsFile(Path(sys.argv[1]))\n"
        "for number in range(1_000_000):\n"
        '    file.append(b\'{"type":"trial-result","itemId":"%d","x":"\' % number + b"y" * 20_000 + b\'"}\\n\')\n'
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(20):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
    reported = int(rest[-1]) if rest else last
    index = index_results(path)
    assert all(problem.code == "torn-record" for problem in index.problems)
    assert len(index.problems) <= 1
    assert [entry.item_id for entry in index.entries][: reported + 1] == [str(number) for number in range(reported + 1)]


def test_reading_lines() -> None:
    problems: list[ReadProblem] = []
    data = b'{"a":1}\n\n  \nnonsense\n[1]\r\n{"b":2}\r\n{"c":'
    lines = list(read_lines(io.BytesIO(data), problems))
    assert [(line.record, line.line, line.offset, line.raw) for line in lines] == [
        ({"a": 1}, 1, 0, b'{"a":1}'),
        ({"b": 2}, 6, data.index(b'{"b"'), b'{"b":2}'),
    ]
    assert [(problem.code, problem.line) for problem in problems] == [
        ("bad-record", 4),
        ("bad-record", 5),
        ("torn-record", 7),
    ]


def test_a_last_line_without_lf_counts_when_it_parses() -> None:
    problems: list[ReadProblem] = []
    assert [line.record for line in read_lines(io.BytesIO(b'{"a":1}'), problems)] == [{"a": 1}]
    assert problems == []


def test_lines_of_any_length_are_read() -> None:
    data = b'{"x":"' + b"y" * 20_000_000 + b'"}\n'
    (line,) = read_lines(io.BytesIO(data), [])
    assert len(line.record["x"]) == 20_000_000


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        (b"", []),
        (b'\n\n{"a":1}\n', [{"a": 1}]),
        (b'[{"a":1},{"a":2}]', [{"a": 1}, {"a": 2}]),
        (b'\xef\xbb\xbf[\n {"a":1},\n {"a":2}\n]\n', [{"a": 1}, {"a": 2}]),
        (b'{\n  "a": 1\n}\n', [{"a": 1}]),
        (b'{"a":1}', [{"a": 1}]),
    ],
)
def test_documents_of_any_layout(data: bytes, records: list[dict[str, Any]]) -> None:
    problems: list[ReadProblem] = []
    assert list(read_documents(io.BytesIO(data), problems)) == records
    assert problems == []


@pytest.mark.parametrize(
    ("data", "records", "codes"),
    [
        (b'[{"a":1},5]', [{"a": 1}], ["bad-record"]),
        (b'{"torn\n{"a":1}\n', [{"a": 1}], ["bad-record"]),
        (b"plain text\n", [], ["bad-record"]),
    ],
)
def test_documents_with_problems(data: bytes, records: list[dict[str, Any]], codes: list[str]) -> None:
    problems: list[ReadProblem] = []
    assert list(read_documents(io.BytesIO(data), problems)) == records
    assert [problem.code for problem in problems] == codes


def test_of_several_lines_of_an_item_the_last_counts(path: Path) -> None:
    path.write_bytes(
        _line("a", n=1)
        + _line("b", n=2)
        + b'{"type":"run-summary","n":1}\n'
        + b'{"type":"something-new"}\n'
        + _line("a", n=3)
        + b'{"type":"run-summary","n":2}\n'
        + b'{"type":"trial-result","itemId":"c"'
    )
    index = index_results(path)
    assert [(record["itemId"], record["n"]) for record in index.records()] == [("a", 3), ("b", 2)]
    assert list(index.raw_lines()) == [_line("a", n=3)[:-1], _line("b", n=2)[:-1]]
    assert index.summary == {"type": "run-summary", "n": 2}
    assert [problem.code for problem in index.problems] == ["torn-record"]


def test_legacy_outcomes_do_not_replace_each_other(path: Path) -> None:
    path.write_bytes(b'{"trajectory":{"n":1}}\n{"trajectory":{"n":2}}\n{"other":1}\n')
    index = index_results(path)
    assert [record["trajectory"]["n"] for record in index.records()] == [1, 2]
    assert index.summary is None


def test_an_empty_file_is_legal(path: Path) -> None:
    path.touch()
    index = index_results(path)
    assert (index.entries, index.problems, index.summary) == ([], [], None)


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_the_rest_of_a_line_that_arrives_while_it_is_read_is_no_line(cut: int) -> None:
    first, second = _line("1"), _line("2")

    class Growing(io.BytesIO):
        """Ends within the second line when it is first read to its end; the rest is there a moment later."""

        def __next__(self) -> bytes:
            line = self.readline()
            if line and not line.endswith(b"\n"):
                place = self.tell()
                self.write(second[cut:])
                self.seek(place)
            if not line:
                raise StopIteration
            return line

    problems: list[ReadProblem] = []
    found = list(read_lines(Growing(first + second[:cut]), problems))
    assert [line.record["itemId"] for line in found if line.record["itemId"] != "2"] == ["1"]
    assert {problem.code for problem in problems} <= {"torn-record"}


def test_a_reader_sees_whole_lines_while_a_writer_appends(path: Path) -> None:
    lines = [_line(str(number), x="y" * 5000) for number in range(60)]
    path.touch()

    def write() -> None:
        with ResultsFile(path) as file:
            for line in lines:
                file.append(line)

    writer = threading.Thread(target=write)
    writer.start()
    problems: list[ReadProblem] = []
    while writer.is_alive():
        problems += index_results(path).problems
    writer.join()
    assert not [problem for problem in problems if problem.code == "bad-record"]
    assert len(index_results(path).entries) == 60


@pytest.mark.parametrize(
    ("count", "last"),
    [(1, "f:1: bad [bad-record]"), (3, "f: 1 more line is no record"), (9, "f: 7 more lines are no records")],
)
def test_lines_that_are_no_records_are_told_without_end(count: int, last: str) -> None:
    problems = [ReadProblem(code="bad-record", line=number + 1, message="bad") for number in range(count)]
    told = problem_lines(problems, "f", most=2)
    assert (len(told), told[-1]) == (min(count, 3), last)
