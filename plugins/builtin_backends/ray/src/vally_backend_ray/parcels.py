"""Which bundles the items of a run need, made once per eval."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from vally import GitSource, Plan, Stimulus, TrialItem
from vally_backend_ray.bundle import Bundle, BundleFiles, make_bundle
from vally_backend_ray.hosts import LocalPlugins
from vally_backend_ray.mirror import map_paths, mirrored
from vally_backend_ray.references import references
from vally_backend_ray.repositories import copy_repository, find_repository

BUNDLE_LIMIT = 2 * 2**30


class Parcels:
    """Makes bundles below `directory`, for any number of threads; blocks, and raises `BackendError`."""

    def __init__(self, directory: Path, process_env: Mapping[str, str]) -> None:
        self._directory = directory
        self._process_env = process_env
        self._of_spec: dict[Path, Bundle] = {}
        self._of_stimulus: dict[int, tuple[Stimulus, Bundle]] = {}
        self._repositories: dict[Path, Path] = {}
        self._lock = threading.Lock()

    def of_plan(self, plan: Plan) -> list[Bundle]:
        """The bundles of all evals, in the order of the plan."""
        specs: dict[Path, tuple[dict[int, Stimulus], set[Path], list[Mapping[str, object]], TrialItem]] = {}
        for item in _samples(plan):
            stimuli, skills, configs, _ = specs.setdefault(item.spec_path, ({}, set(), [], item))
            stimuli[id(item.stimulus)] = item.stimulus
            skills.update(item.skills)
            configs.append(item.executor.config)
        for path, (stimuli, skills, configs, item) in specs.items():
            self._of_spec[path] = self._make(stimuli.values(), skills, configs, item)
        return list(self._of_spec.values())

    def known(self, item: TrialItem) -> Bundle | None:
        """The bundle of an item of the plan; does not block."""
        return self._of_spec.get(item.spec_path)

    def of(self, item: TrialItem) -> Bundle:
        """The bundle of an item; without a plan it is made for its stimulus."""
        known = self.known(item)
        if known is not None:
            return known
        with self._lock:
            held = self._of_stimulus.get(id(item.stimulus))
            if held is None or held[0] is not item.stimulus:
                made = self._make([item.stimulus], item.skills, [item.executor.config], item)
                held = self._of_stimulus[id(item.stimulus)] = (item.stimulus, made)
            return held[1]

    def of_plugins(self, plugins: LocalPlugins) -> Bundle | None:
        """The bundle of local plugins; None without any."""
        if not plugins.paths:
            return None
        return make_bundle(BundleFiles(visible=set(plugins.paths)), self._directory, limit=BUNDLE_LIMIT)

    def _make(
        self,
        stimuli: Iterable[Stimulus],
        skills: Iterable[Path],
        configs: Iterable[Mapping[str, object]],
        item: TrialItem,
    ) -> Bundle:
        given = list(stimuli)
        found = references(
            given,
            skills,
            configs,
            spec_dir=item.spec_dir,
            project_root=item.project_root,
            work_dir=item.work_dir,
        )
        files = BundleFiles(whole=set(found.staged), visible={item.spec_dir, *found.named}, places={item.work_dir})
        cloned = (_local_clone(source, item.spec_dir) for source in map(_git_of, given))
        for directory in {*found.repositories, *(path for path in cloned if path is not None)}:
            self._add_repository(files, directory)
        return make_bundle(files, self._directory, limit=BUNDLE_LIMIT)

    def _add_repository(self, files: BundleFiles, directory: Path) -> None:
        repository = find_repository(directory)
        files.places.add(directory)
        # Without one every trial says so, as it would here.
        if repository is None:
            return
        copy = self._repositories.get(repository.git_dir)
        if copy is None:
            copy = self._directory / f"repository-{len(self._repositories)}"
            copy_repository(repository, copy, self._process_env)
            self._repositories[repository.git_dir] = copy
        files.extra[repository.place] = copy


def _samples(plan: Plan) -> Iterable[TrialItem]:
    """One item of each stimulus of each eval."""
    return (item for item in plan.items() if item.trial_index == 0)


def _git_of(stimulus: Stimulus) -> GitSource | None:
    return stimulus.merged_environment.git


def _local_clone(source: GitSource | None, base: Path) -> Path | None:
    """The directory that `url` of a clone names, None for what has an address."""
    if source is None or source.url is None or "://" in source.url:
        return None
    path = Path(os.path.normpath(base / source.url))
    return path if path.exists() else None


def travelled(item: TrialItem, root: Path) -> TrialItem:
    """The item as a worker runs it: all that it refers to lies below `root`."""
    moved: TrialItem = map_paths(item, lambda path: mirrored(path, root))
    stimulus = map_git(moved.stimulus, root)
    return replace(moved, stimulus=stimulus, workspace=item.workspace)


def map_git(stimulus: Stimulus, root: Path) -> Stimulus:
    """Absolute local paths among the addresses of repositories lie below the root too."""
    changed = {}
    for name in ("environment", "agent_environment", "grading_environment", "effective_environment"):
        environment = getattr(stimulus, name)
        source = None if environment is None else environment.git
        if source is not None and source.url is not None and "://" not in source.url and Path(source.url).is_absolute():
            url = str(mirrored(Path(source.url), root))
            changed[name] = replace(environment, git=replace(source, url=url))
    return replace(stimulus, **changed) if changed else stimulus
