"""`orphan-files`: files of a skill that nothing mentions; and `skill-size`."""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from vally_command_lint.codes import finding
from vally_command_lint.findings import Check
from vally_command_lint.references import local_links
from vally_command_lint.skill_source import SKILL_FILE, SkillSource

ID = "orphan-files"
SIZE_ID = "skill-size"
MAX_TOKENS = 5_000
CHARACTERS_PER_TOKEN = 4
_NEVER_REPORTED = ("LICENSE*", "README*", "CHANGELOG*", ".*", "eval.yaml", "eval.yml", "*.eval.yaml", "*.eval.yml")


def check_orphans(source: SkillSource) -> Check:
    """Follow what files mention, from SKILL.md on."""
    if source.skill is None:
        return Check(id=ID)
    reached = _reached(source)
    orphans = [path for path in source.files if path not in reached and _counts(path)]
    noun = "file" if len(orphans) == 1 else "files"
    findings = [
        finding(ID, f"{path} is not referenced", brief=path, check=ID, file=source.shown(path)) for path in orphans
    ]
    return Check(id=ID, findings=tuple(findings), summary=f"{len(orphans)} {noun} not referenced")


def _counts(path: str) -> bool:
    directories = path.split("/")[:-1]
    if path == SKILL_FILE or "evals" in directories or "tests" in directories:
        return False
    if any(name.startswith(".") for name in directories):
        return False
    return not any(fnmatchcase(posixpath.basename(path), pattern) for pattern in _NEVER_REPORTED)


def _reached(source: SkillSource) -> set[str]:
    reached, pending = {SKILL_FILE}, [SKILL_FILE]
    while pending:
        current = pending.pop()
        text = source.text(current)
        if text is None:
            continue
        left = [path for path in source.files if path not in reached]
        if not left:
            break
        found = set(_mentioned(current, text, left))
        reached |= found
        pending += found
    return reached


def _mentioned(current: str, text: str, candidates: list[str]) -> Iterator[str]:
    """Those of the candidates that a text names, links to, or whose directory it names."""
    base = posixpath.dirname(current)
    # A bare file name is part of every longer form.
    yield from (path for path in candidates if posixpath.basename(path) in text)
    targets = {_below(base, target) for target in local_links(text)} if current.endswith(".md") else set()
    directories = {parent for path in candidates for parent in _parents(path)}
    named = {directory for directory in directories if directory in targets or _is_named(directory, base, text)}
    yield from (path for path in candidates if path in targets or not named.isdisjoint(_parents(path)))


def _below(base: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(base, target))


def _parents(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _is_named(directory: str, base: str, text: str) -> bool:
    """Whether a text names a directory with a slash behind it that begins no longer path."""
    forms = {directory, os.path.relpath(directory, base or ".").replace(os.sep, "/")}
    return any(
        f"{form}/" in text and re.search(rf"(?<![\w-]){re.escape(form)}/(?![\w.%-])", text) is not None
        for form in forms
    )


def check_size(source: SkillSource) -> Check:
    """Estimate the tokens of the body."""
    if source.skill is None:
        return Check(id=SIZE_ID)
    tokens = math.ceil(len(source.skill.body) / CHARACTERS_PER_TOKEN)
    summary = f"about {tokens} tokens"
    if tokens <= MAX_TOKENS:
        return Check(id=SIZE_ID, summary=summary)
    large = finding(
        SIZE_ID,
        f"the body has about {tokens} tokens, more than {MAX_TOKENS}",
        hint="move details to files that the skill names",
        check=SIZE_ID,
        file=source.main_file,
        line=source.skill.body_line,
        column=1,
    )
    return Check(id=SIZE_ID, findings=(large,), summary=summary)
