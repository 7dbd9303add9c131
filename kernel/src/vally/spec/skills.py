"""Skills: the directories a spec offers to the agent, and the SKILL.md in each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.model.evalspec import Diagnostic
from vally.spec import paths
from vally.spec.diagnostics import Collector, Place, raise_errors
from vally.spec.files import PROJECT_BYTES, decode, read_file
from vally.spec.nodes import MappingNode, Node, ScalarNode, Source
from vally.spec.plain_values import read_plain
from vally.spec.reader import read_text
from vally.spec.scalars import describe
from vally.text.globs import InvalidGlob, expand_glob

if TYPE_CHECKING:
    from vally.spec.loading import Loading

SKILL_FILE = "SKILL.md"
SKIPPED_DIRECTORIES = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox"})
_FENCE = re.compile(r"---[ \t]*(?:\r\n|\r|\n)")
_CLOSING = re.compile(r"(?<![^\r\n])---[ \t]*(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")
# Bounded and without backtracking, so that a body of nothing but brackets takes no time.
_LINK = re.compile(r"!?\[[^\]\n]{0,500}+\]\([ \t]{0,20}+<?([^)\s>]{1,500}+)>?[^)\n]{0,500}+\)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """One SKILL.md. `name` is that of the frontmatter, else the directory's; `path` the file itself.

    `has_frontmatter` tells whether the file starts with an opened and closed block; `key_positions` and `positions`
    are the 1-based (line, column) of its keys and of their values; the body starts in line `body_line`.
    """

    name: str
    description: str
    path: Path
    frontmatter: Mapping[str, Any]
    raw_content: str
    file_references: tuple[str, ...] = ()
    has_frontmatter: bool = False
    key_positions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    positions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    body: str = ""
    body_line: int = 1


def parse_skill(path: str | Path) -> SkillFile:
    """Read a SKILL.md file, or that of a skill directory; raises SpecError when its frontmatter cannot be read.

    `file_references` are the relative targets of its Markdown links that exist in the skill, in order.
    """
    collector = Collector()
    skill = read_skill(Path(path), collector)
    raise_errors(collector.ordered())
    assert skill is not None
    return skill


def inspect_skill(path: str | Path, *, display: str | None = None) -> tuple[SkillFile | None, tuple[Diagnostic, ...]]:
    """Like parse_skill with everything that is wrong; never raises for what the file holds.

    `display` is how the diagnostics name the file. None stands for a file that cannot be read.
    """
    collector = Collector()
    skill = read_skill(Path(path), collector, display)
    return skill, collector.ordered()


def read_skill(path: Path, collector: Collector, display: str | None = None) -> SkillFile | None:
    """Like parse_skill, with diagnostics; None when the file cannot be read."""
    file = path / SKILL_FILE if paths.is_dir(path) else path
    directory = Path(os.path.abspath(file)).parent  # noqa: PTH100  # symbolic links keep their names
    source = Source(display or file.as_posix(), file, directory)
    data = read_file(file, source, PROJECT_BYTES, collector)
    text = None if data is None else decode(data, source, collector)
    if text is None:
        return None
    opening = _FENCE.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    node = None
    if opening is not None and closing is not None:
        node = read_text(text[opening.end() : closing.start()], source, collector, first_line=2)
    frontmatter = {} if node is None else _frontmatter(node, collector)
    entries = node.entries if isinstance(node, MappingNode) else []
    name, description = frontmatter.get("name"), frontmatter.get("description")
    start = closing.end() if closing else 0
    return SkillFile(
        name=name if isinstance(name, str) and name.strip() else directory.name,
        description=description if isinstance(description, str) else "",
        path=file,
        frontmatter=frontmatter,
        raw_content=text,
        file_references=tuple(_references(text, directory)),
        has_frontmatter=closing is not None,
        key_positions={entry.key.text: (entry.key.line, entry.key.column) for entry in entries},
        positions={entry.key.text: (entry.value.line, entry.value.column) for entry in entries},
        body=text[start:],
        body_line=1 + sum(1 for _ in _LINE_END.finditer(text, 0, start)),
    )


def _frontmatter(node: Node, collector: Collector) -> dict[str, Any]:
    plain = read_plain(node, Place(label="frontmatter"), collector)
    if not isinstance(node, MappingNode):
        collector.add("invalid-type", node, Place(), key="frontmatter", wanted="a mapping", value=describe(node))
        return {}
    return plain if isinstance(plain, dict) else {}


def _references(text: str, directory: Path) -> Iterator[str]:
    seen = set()
    for match in _LINK.finditer(text):
        target = match[1].partition("#")[0].partition("?")[0].removeprefix("./")
        if target and target not in seen and not _SCHEME.match(match[1]) and paths.exists(directory / target):
            seen.add(target)
            yield target


def find_skills(root: Path) -> list[Path]:
    """Skill directories at and below a directory, by POSIX path; a skill inside a skill belongs to the outer one."""
    found = []
    for directory, names, files in os.walk(root):
        if SKILL_FILE in files:
            found.append(Path(directory))
            names.clear()
        elif "results.jsonl" in files:
            names.clear()
        names[:] = [name for name in names if name not in SKIPPED_DIRECTORIES]
    return sorted(found, key=lambda path: path.as_posix())


def offered_skills(loading: Loading, node: ScalarNode, place: Place) -> list[Path]:
    """The skill directories that one entry of `skills` means; none after a diagnostic."""
    text = node.text.rstrip("/").removesuffix(f"/{SKILL_FILE}").rstrip("/") or node.text
    if paths.has_magic(text):
        return _expanded(loading, node, place, text)
    path = loading.resolve(node, place, text)
    if not paths.is_file(path / SKILL_FILE):
        problem = f"is not a skill directory (no {SKILL_FILE})"
        loading.collector.add("skill-not-found", node, place, skill=node.written or node.text, problem=problem)
        return []
    return [path]


def _expanded(loading: Loading, node: ScalarNode, place: Place, pattern: str) -> list[Path]:
    loading.check_absolute(node, place)
    try:
        found = _matching(node.source.base, pattern)
        if not found and loading.is_in_project_file(node) and (found := _matching(loading.source.base, pattern)):
            loading.warn_legacy_base(node, place)
    except InvalidGlob as error:
        loading.collector.add("invalid-glob", node, place, pattern=pattern, reason=error.reason)
        return []
    if not found:
        shown = node.written or node.text
        loading.collector.add("skill-not-found", node, place, skill=shown, problem="matches no skill")
    return found


def _matching(base: Path, pattern: str) -> list[Path]:
    found = [paths.absolute(base, match) for match in expand_glob(base, pattern, dotfiles=False)]
    return [path for path in found if paths.is_file(path / SKILL_FILE)]


def skill_name(loading: Loading, directory: Path) -> str:
    """The name of a skill: that of its frontmatter, else its directory's."""
    key = ("skill", directory)
    if key not in loading.facts:
        skill = read_skill(directory, Collector(muted=True))
        loading.facts[key] = skill.name if skill else directory.name
    name: str = loading.facts[key]
    return name
