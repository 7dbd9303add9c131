"""`valid-refs`: what SKILL.md links to exists, and lies inside the skill."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from vally_command_lint.codes import finding
from vally_command_lint.findings import Check, Finding
from vally_command_lint.markdown_links import Link, links
from vally_command_lint.skill_source import SkillSource

ID = "valid-refs"
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


def local_target(written: str) -> str | None:
    """The path that a target means, decoded; None for addresses, fragments and targets without a path."""
    if _SCHEME.match(written) and not _DRIVE.match(written):
        return None
    return unquote(written.partition("#")[0].partition("?")[0]).strip() or None


def check_references(source: SkillSource) -> Check:
    """Check every distinct target of SKILL.md once."""
    if source.skill is None:
        return Check(id=ID)
    first: dict[str, Link] = {}
    for link in links(source.skill.body, first_line=source.skill.body_line):
        target = local_target(link.target)
        if target is not None:
            first.setdefault(target, link)
    resolver = Resolver(source.directory)
    wrong = {target: problem for target in first if (problem := resolver.problem(target)) is not None}
    noun = "reference" if len(first) == 1 else "references"
    return Check(
        id=ID,
        findings=tuple(_finding(source, first[target], target, *problem) for target, problem in wrong.items()),
        summary=f"{len(first)} {noun}, {len(wrong)} broken" if first else None,
        evidence=tuple(target for target in first if target not in wrong),
    )


def _finding(source: SkillSource, link: Link, target: str, code: str, problem: str) -> Finding:
    hint = "use '/' between directories" if "\\" in target else None
    message = f"{target} {problem}"
    return finding(code, message, hint=hint, check=ID, file=source.main_file, line=link.line, column=link.column)


@dataclass
class Resolver:
    """Looks up targets below a skill directory, by the exact spelling of their names."""

    root: Path
    _names: dict[str, frozenset[str]] = field(default_factory=dict)

    def problem(self, target: str) -> tuple[str, str] | None:
        """Code and text of what is wrong with a target, or None."""
        if "\0" in target:
            return "broken-ref", "does not exist"
        root = os.path.normpath(self.root)
        path = os.path.normpath(os.path.join(root, target))  # noqa: PTH118  # Path would keep `..`
        if target.startswith(("/", "\\")) or _DRIVE.match(target):
            return "escaping-ref", "is an absolute path"
        if not _is_inside(path, root):
            return "escaping-ref", "lies outside the skill"
        if not self._exists(root, path):
            return "broken-ref", "does not exist"
        if not _is_inside(os.path.realpath(path), os.path.realpath(root)):
            return "escaping-ref", "leads outside the skill through a link"
        return None

    def _exists(self, root: str, path: str) -> bool:
        parent = root
        for name in Path(path).relative_to(root).parts:
            if name not in self._listing(parent):
                return False
            parent = f"{parent}{os.sep}{name}"
        return os.path.exists(path)  # noqa: PTH110  # false for names that cannot be

    def _listing(self, directory: str) -> frozenset[str]:
        if directory not in self._names:
            try:
                self._names[directory] = frozenset(os.listdir(directory))  # noqa: PTH208  # names only
            except OSError:
                self._names[directory] = frozenset()
        return self._names[directory]


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def local_links(text: str) -> Iterator[str]:
    """Paths that a Markdown text links to, decoded."""
    for link in links(text):
        target = local_target(link.target)
        if target is not None:
            yield target
