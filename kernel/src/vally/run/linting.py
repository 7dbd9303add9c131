"""Checking as a library: the same as on the command line, by whichever plugin provides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vally.records import CommandSpec

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Project
    from vally.spec.diagnostics import Severity
    from vally.spec.validation import ValidationReport

_COMMAND = "lint"


def lint(
    paths: Sequence[str | Path] = (),
    *,
    specs: Sequence[str | Path] = (),
    whole_project: bool = False,
    params: Mapping[str, str] | None = None,
    known_domains: str | Path | None = None,
    allowed_dependencies: str | Path | None = None,
    severities: Mapping[str, Severity] | None = None,
    strict: bool = False,
    cwd: str | Path | None = None,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
) -> ValidationReport:
    """Check skills below `paths`, eval specs and, with `whole_project`, everything of a project, as `vally lint` does.

    The arguments are its options; `severities` maps checks and codes to levels. Relative paths start from `cwd`, by
    default the current directory, from which the project file is looked up too, unless `project` is given. Without
    `host` installed plugins are used, `environ` are the variables that placeholders may use, by default none.

    Raises `VallyError` when there is nothing to check, when a file of domains or dependencies is malformed, and when
    no plugin provides the command.
    """
    from vally.host import PluginHost

    plugins = host if host is not None else PluginHost()
    check = plugins.function(cast(CommandSpec, plugins.require("command", _COMMAND)))
    report: ValidationReport = check(
        paths=tuple(map(str, paths)),
        specs=tuple(map(str, specs)),
        whole_project=whole_project,
        params=params or {},
        known_domains=known_domains,
        allowed_dependencies=allowed_dependencies,
        severities=severities or {},
        strict=strict,
        cwd=Path(cwd or ".").absolute(),
        project=project,
        host=plugins,
        environ=environ or {},
    )
    return report
