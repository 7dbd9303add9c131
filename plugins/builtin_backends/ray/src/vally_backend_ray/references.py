"""Which files of the driver's machine an eval refers to."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from vally import GitSource, Stimulus

LONGEST_NAME = 1024


@dataclass(frozen=True, slots=True)
class References:
    """What has to travel: `staged` wholly, hidden files included; `named` are texts that name something.

    `repositories` are directories inside local repositories that workspaces start from.
    """

    staged: frozenset[Path]
    named: frozenset[Path]
    repositories: frozenset[Path]


def references(
    stimuli: Iterable[Stimulus],
    skills: Iterable[Path],
    configs: Iterable[Mapping[str, object]],
    *,
    spec_dir: Path,
    project_root: Path,
    work_dir: Path,
) -> References:
    """Gather them from stimuli, offered skills and configs of executors.

    Texts are looked at word by word, because commands name files too; what they name counts only inside the project,
    as other machines have programs and libraries of their own.
    """
    staged, named, repositories = set(skills), set(), set()
    texts: list[str] = []
    for stimulus in stimuli:
        for value in _leaves((_without_git(stimulus), stimulus.merged_environment)):
            if isinstance(value, Path):
                staged.add(value)
            else:
                texts.append(value)
        repositories |= {source.source for source in _git_sources(stimulus) if source.source is not None}
    for config in configs:
        texts += [value for value in _leaves(config) if isinstance(value, str)]
    bases = dict.fromkeys((spec_dir, work_dir))
    for text in dict.fromkeys(texts):
        named |= set(_named(text, bases, project_root, spec_dir))
    return References(frozenset(staged), frozenset(named), frozenset(repositories))


def _without_git(stimulus: Stimulus) -> list[Any]:
    return [getattr(stimulus, field.name) for field in fields(stimulus) if not field.name.endswith("environment")]


def _git_sources(stimulus: Stimulus) -> list[GitSource]:
    found = (stimulus.merged_environment, stimulus.grading_environment)
    return [environment.git for environment in found if environment.git is not None]


def _leaves(value: Any) -> Iterator[Path | str]:
    """All paths and texts in frozen data, but for repositories, which are no files, and positions."""
    if isinstance(value, (Path, str)):
        yield value
    elif isinstance(value, GitSource):
        return
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name not in ("position", "document", "source"):
                yield from _leaves(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)


def _named(text: str, bases: Iterable[Path], project_root: Path, spec_dir: Path) -> Iterator[Path]:
    for word in _words(text):
        for base in bases:
            path = _existing(base, word)
            if path is not None and path.is_relative_to(project_root) and not spec_dir.is_relative_to(path):
                yield path


def _words(text: str) -> set[str]:
    if len(text) > 64 * LONGEST_NAME:
        return set()
    words = {text}
    try:
        words |= set(shlex.split(text))
    except ValueError:
        words |= set(text.split())
    return {word for word in words if 0 < len(word) <= LONGEST_NAME and "\n" not in word and "\0" not in word}


def _existing(base: Path, word: str) -> Path | None:
    # `normpath` and not `resolve`: a bundle has what lies at the path, whatever links lead there.
    path = Path(os.path.normpath(base / word))
    try:
        return path if path.exists() and path != base else None
    except OSError:
        return None
