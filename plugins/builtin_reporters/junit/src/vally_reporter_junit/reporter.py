"""Writes `eval-results.junit.xml` from the records of a finished run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vally import atomic_write

if TYPE_CHECKING:
    from vally import RunComplete, RunStart

FILE_NAME = "eval-results.junit.xml"
OPTION = "junit"
LABEL = "JUnit"
_PIECE = 1 << 16


class JunitReporter:
    """Keeps nothing while the run goes on; one test suite per eval and model, one test case per trial."""

    def __init__(self) -> None:
        self._start: RunStart | None = None

    def on_run_start(self, event: RunStart) -> None:
        """Remember what the run is about."""
        self._start = event

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        """Write the report and name it; a run whose variants have directories of their own has one in each."""
        from vally_reporter_junit.document import document

        assert self._start is not None
        named: dict[str, Path] = {}
        for label, start, directory in self._parts(event.run_dir):
            path = directory / FILE_NAME
            atomic_write(path, document(start, event.summary, directory / "results.jsonl"))
            named[label] = path
        return {**named, **self._copy(named)}

    def _parts(self, run_dir: Path) -> Iterator[tuple[str, RunStart, Path]]:
        assert self._start is not None
        if not self._start.variant_dirs:
            yield LABEL, self._start, run_dir
        for variant, directory in self._start.variant_dirs.items():
            evals = tuple(item for item in self._start.evals if item.variant == variant)
            if evals:
                yield f"{LABEL} {variant}", replace(self._start, evals=evals), directory

    def _copy(self, named: dict[str, Path]) -> dict[str, Path]:
        """Write the copy that an older spelling of the option asks for."""
        assert self._start is not None
        wanted = self._start.options.flags.get(OPTION)
        if not isinstance(wanted, str) or LABEL not in named:
            return {}
        copy = Path(wanted)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with named[LABEL].open("rb") as file:
            atomic_write(copy, iter(lambda: file.read(_PIECE), b""), is_named=True)
        return {f"{LABEL} copy": copy}
