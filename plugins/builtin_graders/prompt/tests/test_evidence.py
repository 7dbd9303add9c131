"""The evidence of `prompt`: files, excerpts, limits, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import Stimulus, Trajectory
from vally.testing import event, grade, trajectory

PATCH = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"


def run(**fields: Any) -> Trajectory:
    return trajectory(event("assistant_message", content="Hello."), **fields)


def stimulus(**fields: Any) -> Stimulus:
    return Stimulus(name="s", prompt="Do it.", turns=("Do it.",), rubric=("one", "two"), **fields)


def write(root: Path, **files: bytes) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def listing(message: str) -> list[str]:
    section = message.split("# Evidence\n\n")[1].split("\n\n# Excerpts")[0]
    return [line for line in section.splitlines() if line.startswith("- ")]


def test_every_kind_is_a_file(record: Any, reader: Any, tmp_path: Path) -> None:
    write(tmp_path, a__b=b"b\n", c=b"\xff\r\n")
    kinds = {"evidence": ["trajectory", "diff", "golden_patch", "repo"]}
    golden = stimulus(golden_patch={"inline": PATCH})
    result = grade(record, kinds, run(diff="+1\n", work_dir=str(tmp_path)), judge=reader, stimulus=golden)
    assert result.passed
    assert set(reader.files) == set(reader.listed)
    assert reader.files == {
        "trajectory.md": b"# Timeline\n\n[0] assistant_message\n    Hello.\n\n# Output\n\n    Hello.\n",
        "output.txt": b"Hello.",
        "workspace.diff": b"+1\n",
        "golden.patch": PATCH.encode(),
        "repo-index.txt": b"a/b (2 bytes)\nc (3 bytes)\n",
        "repo/a/b": b"b\n",
        "repo/c": b"\xff\r\n",
    }
    assert listing(reader.message) == [
        "- trajectory.md (67 bytes): the events and the final output",
        "- output.txt (6 bytes): the final output",
        "- workspace.diff (3 bytes): the change to the workspace as a unified diff",
        f"- golden.patch ({len(PATCH)} bytes): a change that is known to solve the task, which the agent never saw; "
        "others may be as good",
        "- repo-index.txt (26 bytes): the files of the workspace after the run; 2 of them are in repo/ (5 bytes)",
    ]


def test_kinds_keep_their_order(record: Any, reader: Any) -> None:
    grade(record, {"evidence": ["diff", "trajectory"]}, run(diff="+1\n"), judge=reader)
    assert reader.listed == ["workspace.diff", "trajectory.md", "output.txt"]


def test_nothing_is_left_and_nothing_lies_in_the_workspace(record: Any, reader: Any, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    for _ in range(2):
        grade(record, {"evidence": ["repo"]}, run(work_dir=str(tmp_path)), judge=reader)
    first, second = reader.directories
    assert first != second
    assert not first.exists()
    assert not second.exists()
    assert not first.is_relative_to(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_failing_judge_leaves_nothing(record: Any, reader: Any) -> None:
    reader._args = {"no": "grade"}
    assert grade(record, {}, run(), judge=reader).status == "error"
    assert not reader.directories[0].exists()


@pytest.mark.parametrize("diff", ["", "\n"])
def test_an_empty_diff_is_evidence(diff: str, record: Any, reader: Any) -> None:
    assert grade(record, {"evidence": ["diff"]}, run(diff=diff), judge=reader).passed
    assert reader.files == {"workspace.diff": b"(no changes)"}


def test_a_diff_beside_the_record(record: Any, reader: Any, tmp_path: Path) -> None:
    (tmp_path / "run.diff").write_text("+1\n")
    grade(record, {"evidence": ["diff"]}, run(diff_path="run.diff"), judge=reader, run_dir=tmp_path)
    assert reader.files == {"workspace.diff": b"+1\n"}


@pytest.mark.parametrize("golden", [None, {"path": "missing.patch"}, {"path": "."}], ids=["none", "missing", "folder"])
def test_what_is_missing_is_named(golden: Any, record: Any, reader: Any, tmp_path: Path) -> None:
    kinds = {"evidence": ["golden_patch", "trajectory", "diff", "repo"]}
    work = str(tmp_path / "gone")
    grade(record, kinds, run(work_dir=work), judge=reader, stimulus=stimulus(golden_patch=golden), spec_dir=tmp_path)
    assert listing(reader.message)[2:] == [
        "- golden_patch: not available",
        "- diff: not available",
        "- repo: not available",
    ]
    assert reader.listed == ["trajectory.md", "output.txt"]


def test_the_golden_patch_is_shown_only_when_listed(record: Any, reader: Any) -> None:
    grade(record, {}, run(), judge=reader, stimulus=stimulus(golden_patch={"inline": PATCH}))
    assert PATCH not in reader.message
    assert reader.listed == ["trajectory.md", "output.txt"]


@pytest.mark.parametrize(("golden", "known"), [({"inline": PATCH}, True), ({"path": "fix.patch"}, False)])
def test_a_golden_patch_in_the_record(
    golden: dict[str, str], known: bool, record: Any, reader: Any, tmp_path: Path
) -> None:
    (tmp_path / "fix.patch").write_text(PATCH)
    recorded = run(stimulus={"name": "s", "prompt": "Do it.", "golden_patch": golden})
    grade(record, {"evidence": ["golden_patch"]}, recorded, judge=reader, spec_dir=tmp_path)
    assert ("golden.patch" in reader.files) == known


def test_a_golden_patch_in_a_file(record: Any, reader: Any, tmp_path: Path) -> None:
    (tmp_path / "fix.patch").write_bytes(b"\xff" + PATCH.encode())
    golden = stimulus(golden_patch={"path": "fix.patch"})
    grade(record, {"evidence": ["golden_patch"]}, run(), judge=reader, stimulus=golden, spec_dir=tmp_path)
    assert reader.files == {"golden.patch": ("\ufffd" + PATCH).encode()}


@pytest.mark.parametrize(
    ("recorded", "files"),
    [
        (trajectory(output="only"), {"trajectory.md": "# Timeline\n\n(no events)\n\n# Output\n\n    only\n"}),
        (
            trajectory(event("turn_end", turn_id="0")),
            {"trajectory.md": "# Timeline\n\n[0] turn_end\n\n# Output\n\n    (no output)\n"},
        ),
    ],
    ids=["output", "events"],
)
def test_half_a_trajectory(recorded: Trajectory, files: dict[str, str], record: Any, reader: Any) -> None:
    assert grade(record, {}, recorded, judge=reader).passed
    assert reader.files["trajectory.md"].decode() == files["trajectory.md"]
    assert ("output.txt" in reader.files) == bool(recorded.output)


def windowed(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}\n…[{len(text) - head - tail} characters omitted]…\n{text[-tail:]}"


def test_excerpts_are_windows(record: Any, reader: Any) -> None:
    for length in (6_000, 6_001):
        output = "".join(chr(97 + number % 26) for number in range(length))
        reader.requests.clear()
        grade(record, {}, run(output=output), judge=reader)
        assert reader.files["output.txt"].decode() == output
        expected = output if length == 6_000 else windowed(output, 2_400, 3_600)
        assert reader.excerpt("output.txt") == expected


def test_excerpts_count_characters(record: Any, reader: Any) -> None:
    output = "é" * 6_000
    grade(record, {}, run(output=output), judge=reader)
    assert reader.excerpt("output.txt") == output
    assert "- output.txt (12000 bytes): the final output" in listing(reader.message)


def test_without_files_excerpts_are_longer_and_no_file_is_named(record: Any, text_reader: Any, tmp_path: Path) -> None:
    write(tmp_path, a__b=b"b\n", c=b"x\0")
    output = "".join(chr(97 + number % 26) for number in range(60_001))
    kinds = {"evidence": ["trajectory", "diff", "golden_patch", "repo"]}
    grade(record, kinds, run(output=output, diff="", work_dir=str(tmp_path)), judge=text_reader)
    assert text_reader.excerpt("output") == windowed(output, 24_000, 36_000)
    assert text_reader.excerpt("repo") == "a/b (2 bytes)\nc (2 bytes, binary, content left out)\n\na/b:\n    b\n"
    assert listing(text_reader.message)[1:] == [
        "- output (60001 characters): the final output",
        "- diff (12 characters): the change to the workspace as a unified diff",
        "- repo (64 characters): the files of the workspace after the run",
        "- golden_patch: not available",
    ]
    for name in ("trajectory.md", "output.txt", "workspace.diff", "repo-index.txt", "working directory"):
        assert name not in text_reader.message
    # The files are there nevertheless, as what was judged.
    assert "output.txt" in text_reader.files


def test_without_files_excerpts_share_a_limit(record: Any, text_reader: Any) -> None:
    text = "x" * 100_000
    messages = [event("assistant_message", content="y" * 20_000) for _ in range(5)]
    recorded = trajectory(*messages, output=text, diff=text)
    golden = stimulus(golden_patch={"inline": text})
    grade(record, {"evidence": ["trajectory", "diff", "golden_patch"]}, recorded, judge=text_reader, stimulus=golden)
    lengths = [len(text_reader.excerpt(name)) for name in ("trajectory", "output", "diff", "golden_patch")]
    assert all(50_000 < length < 50_050 for length in lengths)


def test_short_items_leave_their_share_to_others(record: Any, text_reader: Any) -> None:
    recorded = trajectory(event("assistant_message", content="y"), output="x", diff="z" * 61_000)
    grade(record, {"evidence": ["trajectory", "diff"]}, recorded, judge=text_reader)
    assert text_reader.excerpt("diff") == windowed("z" * 61_000, 24_000, 36_000)


def test_the_index_tells_what_was_left_out(record: Any, reader: Any, tmp_path: Path) -> None:
    write(tmp_path, big=b"x" * 65_537, binary=b"\0", small=b"x")
    (tmp_path / "link").symlink_to("small")
    grade(record, {"evidence": ["repo"]}, run(work_dir=str(tmp_path)), judge=reader)
    assert reader.excerpt("repo-index.txt").splitlines() == [
        "big (65537 bytes, content left out)",
        "binary (1 bytes, binary, content left out)",
        "link (symbolic link)",
        "small (1 bytes)",
    ]
    assert reader.listed == ["repo-index.txt", "repo/small"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb\x00c\x7f\td", "a␛[31mb␀c␡\td"),
        ("\ud83d\ude00 \ud800", "😀 \ufffd"),
    ],
    ids=["controls", "surrogates"],
)
def test_messages_are_clean_text(text: str, shown: str, record: Any, reader: Any) -> None:
    grade(record, {}, run(output=text), judge=reader)
    assert reader.excerpt("output.txt") == shown
    reader.message.encode()
