"""The contract of exporters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.testing.contracts.case import Case
from vally.testing.hosts import plugin_host
from vally.testing.projects import ProjectBuilder
from vally.testing.sentinels import tree_digest

if TYPE_CHECKING:
    from vally.foreign import ExportRequest, ExportResult
    from vally.records import ExporterSpec


def exporter_contract(
    record: ExporterSpec, *, options: Mapping[str, object] | None = None, run: object | None = None
) -> list[Case]:
    """Cases every exporter passes; `run` is the opened run of an exporter with `source="run"`."""
    subject = _Subject(record, options or {}, run)
    return [Case("files", _files, subject), Case("repeatable", _repeatable, subject)]


class _Subject:
    """The exporter under contract."""

    def __init__(self, record: ExporterSpec, options: Mapping[str, object], run: object | None) -> None:
        self._record = record
        self._options = options
        self._run = run

    async def export(self, directory: Path, target: str) -> ExportResult:
        """Export the kit's own eval, or the run, into a new directory."""
        host = plugin_host(self._record)
        request = replace(
            self._request(directory),
            options=host.parse_config(self._record, self._options),
            output_dir=directory / target,
        )
        request.output_dir.mkdir()
        result: ExportResult = await host.create(self._record).export(request)
        return result

    def _request(self, directory: Path) -> ExportRequest:
        from vally.foreign import ExportRequest

        if self._record.source == "run":
            return ExportRequest(run=self._run, output_dir=directory)
        return ExportRequest(specs=(_spec(directory / "project"),), output_dir=directory)


def _spec(root: Path) -> Any:
    from vally.spec import load_eval_spec

    project = ProjectBuilder(root)
    project.file("data/list.txt", "b\na\n")
    files = [{"src": "../../data/list.txt", "dest": "list.txt"}]
    stimuli: list[Mapping[str, object]] = [
        {"name": "sort", "prompt": "Sort list.txt."},
        {"name": "two", "turns": ["Read list.txt.", "Sort it."]},
    ]
    path = project.eval("sorting", stimuli, environment={"files": files})
    return load_eval_spec(path, host=plugin_host())


async def _files(subject: _Subject, directory: Path) -> None:
    result = await subject.export(directory, "out")
    written = {path for path in (directory / "out").rglob("*") if path.is_file()}
    assert written, "nothing was written"
    named = {(directory / "out" / path).resolve() for path in result.files}
    assert named == {path.resolve() for path in written}, "the result must name the files that were written"
    assert result.stimuli > 0
    for warning in result.warnings:
        assert "\n" not in warning, "a warning must be one line"


async def _repeatable(subject: _Subject, directory: Path) -> None:
    before = tree_digest(directory / "project") if (directory / "project").exists() else None
    await subject.export(directory, "one")
    between = tree_digest(directory / "project") if before else None
    await subject.export(directory, "two")
    assert before == between, "what was exported was changed"
    assert _contents(directory / "one") == _contents(directory / "two"), "two exports differ"


def _contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}
