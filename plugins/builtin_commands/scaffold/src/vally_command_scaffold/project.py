"""The project that a command runs in, and its plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vally import SpecError, find_project, print_warning

if TYPE_CHECKING:
    from vally import CliContext, PluginHost, Project


def current_project(context: CliContext) -> Project:
    """The project of the current directory; raises SpecError when its file has errors."""
    project = find_project(context.cwd, context.cwd, context.config_path, context.no_config)
    if any(item.level == "error" for item in project.diagnostics):
        raise SpecError("the project file has errors", diagnostics=project.diagnostics)
    return project


def plugins_of_project(context: CliContext) -> PluginHost:
    """All plugins, those of the project included; what failed to load is warned about."""
    host = context.host(current_project(context))
    for problem in host.problems():
        raise problem
    for kind in ("grader", "executor", "judge"):
        host.records(kind)
    if not context.display.quiet:
        for warning in host.take_warnings():
            print_warning(warning)
    return host
