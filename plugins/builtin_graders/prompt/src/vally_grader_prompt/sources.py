"""Where the evidence of one run comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vally import GraderInput, RepoFile, RepoSnapshot, Trajectory, compact_json
from vally_grader_prompt.evidence import Evidence, EvidenceFile, EvidenceItem
from vally_grader_prompt.timeline import EVENT_LENGTH, indented, timeline
from vally_grader_prompt.windows import window

MAX_PATCH_BYTES = 16 * 2**20
_LEFT_OUT = {
    "link": "symbolic link",
    "binary": "binary, content left out",
    "limit": "content left out",
    "unreadable": "cannot be read",
}


def gather(input: GraderInput[Any], kinds: Sequence[str]) -> Evidence:
    """The evidence of these kinds, in their order."""
    sources = {
        "trajectory": lambda: trajectory_items(input.trajectory),
        "diff": lambda: _diff(input.diff),
        "golden_patch": lambda: _golden_patch(input),
        "repo": lambda: _repo(input.repo),
    }
    found = {kind: tuple(sources[kind]()) for kind in kinds}
    return Evidence(
        items=tuple(item for items in found.values() for item in items),
        missing=tuple(kind for kind, items in found.items() if not items),
    )


def no_evidence(kinds: Sequence[str]) -> str:
    """The evidence line of an error when nothing was found."""
    return f"No evidence to grade: {', '.join(kinds)} resolved to nothing"


def trajectory_items(trajectory: Trajectory, side: str = "") -> Iterator[EvidenceItem]:
    """Timeline and output; nothing for a run that did nothing. `side` names one of two runs."""
    blocks, output = timeline(trajectory.events), trajectory.output
    if not blocks and not output.strip():
        return
    shown = window(output, EVENT_LENGTH) if output.strip() else "(no output)"
    text = f"# Timeline\n\n{blocks or '(no events)'}\n\n# Output\n\n{indented(shown)}\n"
    yield _text_item("trajectory", "the events and the final output", text, side)
    if output.strip():
        yield _text_item("output", "the final output", output, side)


_FILE_NAMES = {
    "trajectory": "trajectory.md",
    "output": "output.txt",
    "diff": "workspace.diff",
    "golden_patch": "golden.patch",
}


def _text_item(name: str, description: str, text: str, side: str = "") -> EvidenceItem:
    path = f"{side.lower()}/{_FILE_NAMES[name]}" if side else _FILE_NAMES[name]
    whose = f" of agent {side}" if side else ""
    return EvidenceItem(
        name=f"{name}{whose}", description=f"{description}{whose}", files=(EvidenceFile.of(path, text),), text=text
    )


def _diff(diff: str | None) -> Iterator[EvidenceItem]:
    if diff is not None:
        text = diff if diff.strip() else "(no changes)"
        yield _text_item("diff", "the change to the workspace as a unified diff", text)


def _golden_patch(input: GraderInput[Any]) -> Iterator[EvidenceItem]:
    text = _golden_text(input)
    if text is not None:
        description = "a change that is known to solve the task, which the agent never saw; others may be as good"
        yield _text_item("golden_patch", description, text)


def _golden_text(input: GraderInput[Any]) -> str | None:
    patch = input.stimulus.golden_patch or {}
    inline, path = patch.get("inline"), patch.get("path")
    if isinstance(inline, str):
        return inline
    if not isinstance(path, str):
        return None
    try:
        with Path(input.spec_dir, path).open("rb") as file:
            return file.read(MAX_PATCH_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _repo(snapshot: RepoSnapshot | None) -> Iterator[EvidenceItem]:
    if snapshot is None:
        return
    kept = [file for file in snapshot.files if file.content is not None]
    index = "\n".join(_index_line(file) for file in snapshot.files)
    total = sum(len(file.content or b"") for file in kept)
    yield EvidenceItem(
        name="repo",
        description="the files of the workspace after the run",
        files=(
            EvidenceFile.of("repo-index.txt", index + "\n"),
            *(EvidenceFile(f"repo/{file.path}", file.content or b"") for file in kept),
        ),
        text=index,
        long_text="\n\n".join([index, *(_shown_file(file) for file in kept)]),
        more=f"; {len(kept)} of them are in repo/ ({total} bytes)",
    )


def _index_line(file: RepoFile) -> str:
    size = "" if file.size is None else f"{file.size} bytes"
    notes = [note for note in (size, _LEFT_OUT[file.left_out] if file.left_out else "") if note]
    return f"{_shown_path(file)} ({', '.join(notes)})"


def _shown_file(file: RepoFile) -> str:
    content = (file.content or b"").decode("utf-8", "replace")
    return f"{_shown_path(file)}:\n{indented(content)}"


def _shown_path(file: RepoFile) -> str:
    # A name can hold line breaks and all else that would make it look like something different.
    return file.path if file.path.isprintable() else compact_json(file.path)
