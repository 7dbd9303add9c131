"""One declaring hook per kind of plugin; a hook takes no arguments, has no side effects and reads no environment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from vally.records import (
        BackendSpec,
        CommandSpec,
        EvalProviderSpec,
        ExecutorSpec,
        ExporterSpec,
        GraderSpec,
        JudgeSpec,
        ReporterSpec,
    )

PROJECT_NAME = "vally"
hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)


@hookspec
def vally_graders() -> Iterable[GraderSpec]:  # type: ignore[empty-body]  # a specification has no body
    """Yield one record per grader keyword this plugin provides."""


@hookspec
def vally_executors() -> Iterable[ExecutorSpec]:  # type: ignore[empty-body]
    """Yield one record per executor this plugin provides."""


@hookspec
def vally_backends() -> Iterable[BackendSpec]:  # type: ignore[empty-body]
    """Yield one record per backend this plugin provides."""


@hookspec
def vally_judges() -> Iterable[JudgeSpec]:  # type: ignore[empty-body]
    """Yield one record per judge this plugin provides."""


@hookspec
def vally_reporters() -> Iterable[ReporterSpec]:  # type: ignore[empty-body]
    """Yield one record per reporter this plugin provides."""


@hookspec
def vally_commands() -> Iterable[CommandSpec]:  # type: ignore[empty-body]
    """Yield one record per command this plugin provides."""


@hookspec
def vally_exporters() -> Iterable[ExporterSpec]:  # type: ignore[empty-body]
    """Yield one record per exporter this plugin provides."""


@hookspec
def vally_eval_providers() -> Iterable[EvalProviderSpec]:  # type: ignore[empty-body]
    """Yield one record per eval provider this plugin provides."""
