"""What passes between the kernel and plugins that convert to and from files of other tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from vally.model.evalspec import EvalSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Input of an exporter: validated specs with absolute paths, or an opened run, and an empty directory."""

    specs: Sequence[EvalSpec] = ()
    run: object | None = None
    output_dir: Path
    options: object = None
    log: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What an exporter wrote."""

    files: Sequence[Path]
    stimuli: int
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """What an eval provider may know; it writes nothing outside `scratch_dir`."""

    params: Mapping[str, str]
    project_dir: Path
    scratch_dir: Path
    log: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSpec:
    """A foreign eval in the shape of eval.yaml; relative paths are relative to `base_dir`.

    `positions` maps JSON Pointers to (line, column) of the foreign file, both 1-based.
    """

    spec: Mapping[str, object]
    base_dir: Path
    positions: Mapping[str, tuple[int, int]] | None = None
    warnings: Sequence[str] = ()
