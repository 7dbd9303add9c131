"""`dependency-scan`: what a skill needs beside its text, against a list of what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from vally_command_lint.addresses import Lines
from vally_command_lint.codes import finding
from vally_command_lint.entry_files import Allowed
from vally_command_lint.findings import Check, Finding
from vally_command_lint.skill_source import SkillSource

ID = "dependency-scan"
BUILT_IN_TOOLS = frozenset({
    "ask_user", "bash", "create", "edit", "fetch_copilot_cli_documentation", "glob", "grep", "powershell", "read",
    "report_intent", "search", "skill", "sql", "store_memory", "task", "view", "web_fetch", "web_search",
})  # fmt: skip
_INVOKES = re.compile(r"INVOKES\b[\s:`'\"(]*[\w./\\-]*\w\.[A-Za-z]\w*", re.IGNORECASE)
_TOOL = re.compile(r"#tool:([\w./*-]*[\w*])")


def check_dependencies(source: SkillSource, allowed: Sequence[Allowed]) -> Check:
    """Report every dependency that has no entry; its message is the entry to add."""
    if source.skill is None:
        return Check(id=ID)
    found = {item.message.lower(): item for item in reversed(list(_dependencies(source)))}
    listed = {entry.key for entry in allowed}
    missing = [item for key, item in reversed(found.items()) if key not in listed]
    noun = "dependency" if len(found) == 1 else "dependencies"
    evidence = tuple(item.message for key, item in reversed(found.items()) if key in listed)
    summary = f"{len(found)} {noun}, {len(missing)} not listed"
    return Check(id=ID, findings=tuple(missing), summary=summary, evidence=evidence)


def dependency_keys(sources: Iterable[SkillSource]) -> set[str]:
    """Keys of all dependencies of some skills, in lower case."""
    return {item.message.lower() for source in sources if source.skill for item in _dependencies(source)}


def unused_entries(allowed: Sequence[Allowed], used: set[str], display: str) -> Iterator[Finding]:
    """Entries of the allow file that no dependency needed."""
    for entry in allowed:
        if entry.key not in used:
            message = f"entry '{entry.key}' matches nothing"
            yield finding("unused-allow-entry", message, check=ID, file=display, line=entry.line, column=1)


def _dependencies(source: SkillSource) -> Iterator[Finding]:
    skill = source.skill
    assert skill is not None
    for path in source.scripts:
        yield _found(f"script:{source.name}:{path}", source.shown(path), None, None)
    if _INVOKES.search(skill.description):
        yield _found(f"invokes:{source.name}", source.main_file, *skill.positions.get("description", (1, 1)))
    lines = Lines(skill.body)
    for match in _TOOL.finditer(skill.body):
        if match[1] not in BUILT_IN_TOOLS:
            line, column = lines.position(match.start())
            key = f"tool-ref:{source.name}:#tool:{match[1]}"
            yield _found(key, source.main_file, line + skill.body_line - 1, column)


def _found(key: str, file: str, line: int | None, column: int | None) -> Finding:
    return finding("unlisted-dependency", key, check=ID, file=file, line=line, column=column)
