"""The files that reporters leave in the directory of a run, as their records tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vally import ReporterSpec, RunOptions

if TYPE_CHECKING:
    from pathlib import Path

    from vally import PluginHost

RESULTS = "results.jsonl"
REPORT = "report.md"


def saved_files(host: PluginHost, directory: Path) -> Iterator[tuple[str, Path]]:
    """Label and path of the records, of what reporters wrote, and of an experiment's report, where they are there."""
    written = [item for record in _reporters(host) for item in record.files.items()]
    for label, name in [("JSONL", RESULTS), *written, ("Report", REPORT)]:
        if (directory / name).is_file():
            yield label, directory / name


def writers(host: PluginHost, directory: Path) -> Iterator[tuple[ReporterSpec, list[str]]]:
    """The reporters that wrote files to a directory, with the names of these."""
    for record in _reporters(host):
        there = [name for name in record.files.values() if (directory / name).is_file()]
        if there:
            yield record, there


def writing_again(record: ReporterSpec) -> RunOptions:
    """The options with which a reporter writes its files, and does nothing that the user would have to ask for."""
    flags: dict[str, object] = dict.fromkeys(option.name for option in record.options)
    if record.option is not None:
        flags[record.option] = True
    return RunOptions(progress="none", flags=flags)


def _reporters(host: PluginHost) -> list[ReporterSpec]:
    found = [record for record in host.records("reporter").values() if isinstance(record, ReporterSpec)]
    return sorted(found, key=lambda record: (record.order, host.rank(record)))
