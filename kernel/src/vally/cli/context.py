"""What a command is given: environment, display settings, project and plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.cli.display import DisplayOptions

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Project
    from vally.records import Record
    from vally.run.trial import RunContext

PLUGIN_OPTIONS = {
    "grader_plugin": "grader",
    "executor_plugin": "executor",
    "reporter_plugin": "reporter",
}
PROJECT_KINDS = {
    "graders": "grader",
    "executors": "executor",
    "backends": "backend",
    "reporters": "reporter",
    "judges": "judge",
    "exporters": "exporter",
    "evalProviders": "eval-provider",
}


@dataclass(slots=True, kw_only=True)
class CliContext:
    """The state of one invocation, handed to every command as the click context object.

    `environ` is the process environment, `cwd` the current directory; `host_objects` are records or modules that a
    caller of the in-process program adds to the plugins; they take the place of installed ones of the same name.
    """

    environ: Mapping[str, str]
    cwd: Path
    host_objects: Sequence[object] = ()
    display: DisplayOptions = field(default_factory=DisplayOptions)
    config: str | None = None
    no_config: bool = False
    plugin_words: dict[str, Any] = field(default_factory=dict)

    @property
    def config_path(self) -> Path | None:
        """The project file named by option or `VALLY_CONFIG`; None means: search, unless `no_config`."""
        named = self.config or self.environ.get("VALLY_CONFIG")
        return self.cwd / named if named and not self.no_config else None

    @property
    def autoload(self) -> bool:
        """Whether installed third-party plugins may load."""
        return not self.plugin_words.get("no_plugins") and self.environ.get("VALLY_DISABLE_PLUGIN_AUTOLOAD") != "1"

    @property
    def cache_dir(self) -> Path:
        """Root of what may be deleted at any time."""
        from vally.cli.own_process import cache_directory

        return cache_directory(self.environ, self.cwd)

    def judge_context(self, run_id: str) -> RunContext:
        """What judges may know of a command that runs no agent; its project is that of the current directory."""
        from vally.cli.messages import print_warning
        from vally.run.trial import RunContext
        from vally.spec.project import find_project

        return RunContext(
            run_id=run_id,
            cache_dir=self.cache_dir,
            project_root=find_project(self.cwd, self.cwd, self.config_path, self.no_config).root,
            process_env=self.environ,
            on_warning=print_warning,
        )

    def bare_host(self) -> PluginHost:
        """Plugins that are installed, without those of a project or of options; for help and completion."""
        return self._host(project=(), command_line=(), bases=(self.cwd,))

    def option_records(self, kind: str) -> Mapping[str, Record]:
        """Records of plugins that bring options of their own, as far as options about plugins let them.

        A directory named by an option shadows the installed copy of it, which must not be imported then. What is
        wrong with such a directory is for the command itself to say.
        """
        from vally.errors import PluginError

        try:
            host = self._host(project=(), command_line=self._command_line(), bases=(self.cwd,))
            return host.records(kind)
        except PluginError:
            return self.bare_host().records(kind)

    def _command_line(self) -> tuple[tuple[str, str], ...]:
        words = self.plugin_words
        return tuple(
            (kind, specifier) for option, kind in PLUGIN_OPTIONS.items() for specifier in words.get(option) or ()
        )

    def host(self, project: Project, *, base: Path | None = None) -> PluginHost:
        """Plugins of the project and the options of this command; `base` is where local paths are looked up first."""
        words = self.plugin_words
        from_project: tuple[tuple[str, str, Path], ...] = ()
        if not words.get("no_project_plugins"):
            from_project = tuple(
                (PROJECT_KINDS[key], specifier, project.root)
                for key, specifiers in project.plugins.items()
                for specifier in specifiers
            )
        bases = (base, self.cwd) if base is not None and base != self.cwd else (self.cwd,)
        return self._host(project=from_project, command_line=self._command_line(), bases=bases)

    def _host(self, *, project: Any, command_line: Any, bases: tuple[Path, ...]) -> PluginHost:
        from vally.host import PluginHost, PluginSources

        return PluginHost(
            sources=PluginSources(
                no_plugins=not self.autoload,
                no_plugin=tuple(self.plugin_words.get("no_plugin") or ()),
                project=project,
                command_line=command_line,
                bases=bases,
                objects=tuple(self.host_objects),
            )
        )
