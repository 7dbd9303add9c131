"""What the trials of a run share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from vally import Guardian, PluginHost, RunContext, Stimulus, candidate_variables
from vally_backend_local.baseline_cache import BaselineCache
from vally_backend_local.config import LocalArgs
from vally_backend_local.disk import FreeSpace
from vally_backend_local.kept_workspaces import KeptWorkspaces
from vally_backend_local.needs import Needs, diff_needs
from vally_backend_local.scratch import RunScratch, make_scratch, sweep
from vally_backend_local.skills import SkillReader
from vally_backend_local.spare_directories import SpareDirectories
from vally_backend_local.workspaces import MAX_CACHE_BYTES, WorkspaceFiller

MAX_STAGING_THREADS = 8
MAX_CAPTURE_THREADS = 64


@dataclass
class RunResources:
    """Caches, limits and directories of one run; `scratch` is removed at its end."""

    context: RunContext
    args: LocalArgs
    temporary: Path
    scratch: RunScratch
    filler: WorkspaceFiller
    baselines: BaselineCache | None
    free_space: FreeSpace
    spare: SpareDirectories
    kept: KeptWorkspaces = field(default_factory=KeptWorkspaces)
    skills: SkillReader = field(default_factory=SkillReader)
    guardian: Guardian = field(default_factory=Guardian)
    staging: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MAX_STAGING_THREADS))
    capturing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MAX_CAPTURE_THREADS))
    _plain: tuple[Mapping[str, str], dict[str, str]] | None = None
    _variables: dict[tuple[int, tuple[str, ...]], tuple[Mapping[str, str], Mapping[str, str]]] = field(
        default_factory=dict
    )
    _said: set[str] = field(default_factory=set)
    _needs: dict[int, tuple[Stimulus, Needs]] = field(default_factory=dict)

    def needs(self, host: PluginHost, stimulus: Stimulus) -> Needs:
        """Which diffs a stimulus needs, asked once."""
        known = self._needs.get(id(stimulus))
        if known is None or known[0] is not stimulus:
            known = self._needs[id(stimulus)] = (stimulus, diff_needs(host, stimulus))
        return known[1]

    def plain(self, process_env: Mapping[str, str]) -> dict[str, str]:
        """An environment as a dictionary, which is much faster to read than that of the process."""
        if self._plain is None or self._plain[0] is not process_env:
            self._plain = (process_env, dict(process_env))
        return self._plain[1]

    def agent_variables(self, process_env: Mapping[str, str], pass_env: tuple[str, ...]) -> Mapping[str, str]:
        """What of an environment agents may have at all; picked once, because it holds a lot that they may not."""
        key = (id(process_env), pass_env)
        known = self._variables.get(key)
        if known is None or known[0] is not process_env:
            known = self._variables[key] = (process_env, candidate_variables(process_env, pass_env))
        return known[1]

    def warn_once(self, line: str) -> None:
        """Warn of something that holds for the whole run."""
        if line not in self._said:
            self._said.add(line)
            self.context.on_warning(line)

    def close(self) -> None:
        """Keep the caches within their bounds and remove the scratch directory. Blocks; raises OSError."""
        self.guardian.shutdown()
        self.spare.close()
        self.filler.prune()
        if self.baselines is not None:
            self.baselines.prune(MAX_CACHE_BYTES)
        self.scratch.close()


def open_resources(args: LocalArgs, context: RunContext) -> RunResources:
    """Make what a run needs. Raises OSError when the temporary directory cannot be written."""
    temporary = temporary_directory(context.process_env)
    sweep(temporary)
    scratch = make_scratch(temporary, keep_workspaces=context.keep_workspaces)
    cache = context.cache_dir if _is_writable(context.cache_dir) else None
    if cache is None:
        context.on_warning(f"cache directory '{context.cache_dir}' is not writable: workspaces are made anew each time")
    return RunResources(
        context=context,
        args=args,
        temporary=temporary,
        scratch=scratch,
        filler=WorkspaceFiller(cache, scratch.directory, context.process_env),
        baselines=BaselineCache(cache) if cache else None,
        free_space=FreeSpace(args.min_free, context.on_warning),
        spare=SpareDirectories(scratch.directory),
    )


def temporary_directory(process_env: Mapping[str, str]) -> Path:
    """The real path of the system's temporary directory, as the caller's environment names it."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        named = process_env.get(name)
        if named and Path(named).is_dir():
            return Path(named).resolve()
    return Path(tempfile.gettempdir()).resolve()


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK | os.X_OK)
