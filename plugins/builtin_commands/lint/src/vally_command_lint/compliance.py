"""`spec-compliance`: the rules of the Agent Skills format for SKILL.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vally import SkillFile, did_you_mean
from vally_command_lint.codes import SUB_CHECKS, finding
from vally_command_lint.findings import Check, Finding, Level, from_diagnostic, worst
from vally_command_lint.skill_source import SkillSource

ID = "spec-compliance"
MAX_LINES = 500
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
STANDARD_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
CLIENT_KEYS = frozenset({
    "agent", "argument-hint", "context", "disable-model-invocation", "effort", "hooks", "mode", "model", "paths",
    "tools", "user-invocable", "version",
})  # fmt: skip
_KEBAB_CASE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LINE_END = re.compile(r"\r\n|\r|\n")


def check_compliance(source: SkillSource) -> Check:
    """Run the four sub-checks."""
    if source.skill is None:
        findings = [_as_frontmatter(from_diagnostic(item)) for item in source.diagnostics]
        passed = 0
    else:
        findings = list(_findings(source, source.skill))
        failed = {item.code for item in findings if item.level == "error"}
        passed = sum(code not in failed for code in SUB_CHECKS)
    return Check(
        id=ID,
        findings=tuple(replace(item, check=ID) for item in sorted(findings, key=_place)),
        summary=f"{passed}/{len(SUB_CHECKS)} checks passed",
        evidence=() if source.skill is None else tuple(_evidence(source.skill, findings)),
    )


def _place(item: Finding) -> tuple[int, int]:
    return (item.line or 0, item.column or 0)


def _as_frontmatter(item: Finding) -> Finding:
    return replace(item, code="frontmatter") if item.level == "error" else item


def line_count(text: str) -> int:
    """Number of lines; a final line end does not start one."""
    return len(_LINE_END.findall(text)) + (bool(text) and not text.endswith(("\r", "\n")))


def _findings(source: SkillSource, skill: SkillFile) -> Iterator[Finding]:
    broken = [_as_frontmatter(from_diagnostic(item)) for item in source.diagnostics]
    yield from broken
    checker = _Frontmatter(source.main_file, skill)
    if not skill.has_frontmatter:
        yield finding("frontmatter", f"no YAML frontmatter at the start of {skill.path.name}", **checker.at_start)
    elif not skill.frontmatter and not broken:
        yield finding("frontmatter", "the frontmatter is empty", **checker.at_start)
    yield from checker.keys()
    if worst(broken) != "error" or skill.frontmatter:
        yield from checker.name(source.directory.name)
        yield from checker.description()
    lines = line_count(skill.raw_content)
    if lines > MAX_LINES:
        yield finding(
            "line-count",
            f"{skill.path.name} has {lines} lines, at most {MAX_LINES} are allowed",
            file=source.main_file,
            line=MAX_LINES + 1,
            column=1,
        )


class _Frontmatter:
    """The rules of the keys."""

    def __init__(self, file: str, skill: SkillFile) -> None:
        self._file = file
        self._skill = skill
        self._values = skill.frontmatter

    @property
    def at_start(self) -> dict[str, Any]:
        """The position of the frontmatter as a whole."""
        return {"file": self._file, "line": 1, "column": 1}

    def _at(self, key: str, *, of_key: bool = False) -> dict[str, Any]:
        positions = self._skill.key_positions if of_key else self._skill.positions
        if key not in positions:
            return self.at_start
        line, column = positions[key]
        return {"file": self._file, "line": line, "column": column, "pointer": f"/{key}"}

    def keys(self) -> Iterator[Finding]:
        """Types of the optional keys, and keys that are not of the format."""
        for key, value in self._values.items():
            problem = _problem(key, value)
            if problem is not None:
                yield finding("frontmatter", f"key '{key}' must be {problem}", **self._at(key))
            elif key == "metadata":
                yield from self._metadata(value)
        for key in self._skill.key_positions:
            if key not in STANDARD_KEYS:
                yield self._unknown(key)

    def _metadata(self, values: Mapping[str, object]) -> Iterator[Finding]:
        for key, value in values.items():
            if not isinstance(value, str):
                yield finding(
                    "metadata-not-string", f"metadata.{key} is not a string; quote it", **self._at("metadata")
                )

    def _unknown(self, key: str) -> Finding:
        if key in CLIENT_KEYS:
            level: Level = "info"
            message, hint = f"key '{key}' is known to some agents only", None
        else:
            level = "warning"
            message, hint = f"unknown key '{key}'", did_you_mean(key, STANDARD_KEYS)
        return finding("unknown-frontmatter-key", message, level=level, hint=hint, **self._at(key, of_key=True))

    def name(self, directory: str) -> Iterator[Finding]:
        """The rules of `name`."""
        at = self._at("name")
        name = self._values.get("name")
        if name is None:
            yield finding("name-format", "name is missing", **at)
        elif not isinstance(name, str):
            yield finding("name-format", "name must be a string", **at)
        else:
            if not 1 <= len(name) <= MAX_NAME:
                yield finding("name-format", f"name must have 1 to {MAX_NAME} characters, it has {len(name)}", **at)
            if name and not _KEBAB_CASE.fullmatch(name):
                yield finding("name-format", "Name must be kebab-case", **at)
            if name != directory:
                yield finding("name-format", f"name '{name}' does not match its directory '{directory}'", **at)

    def description(self) -> Iterator[Finding]:
        """The rules of `description`."""
        at = self._at("description")
        text = self._values.get("description")
        if text is None:
            yield finding("description", "description is missing", **at)
        elif not isinstance(text, str):
            yield finding("description", "description must be a string", **at)
        elif not text.strip():
            yield finding("description", "description is empty", **at)
        elif (length := len(text.strip())) > MAX_DESCRIPTION:
            problem = f"description has {length} characters, at most {MAX_DESCRIPTION} are allowed"
            yield finding("description", problem, **at)


def _problem(key: str, value: object) -> str | None:
    """What a value of an optional key must be, or None."""
    if key == "license" and not isinstance(value, str):
        return "a string"
    if key == "compatibility" and not (isinstance(value, str) and 1 <= len(value) <= MAX_COMPATIBILITY):
        return f"a string of 1 to {MAX_COMPATIBILITY} characters"
    if key == "metadata" and not isinstance(value, Mapping):
        return "a mapping"
    if key == "allowed-tools":
        items = value if isinstance(value, list) else [value]
        return None if all(isinstance(item, str) for item in items) else "a string or a list of strings"
    return None


def _evidence(skill: SkillFile, findings: list[Finding]) -> Iterator[str]:
    failed = {item.code for item in findings if item.level == "error"}
    shown = {
        "frontmatter": ", ".join(skill.frontmatter),
        "name-format": str(skill.frontmatter.get("name")),
        "description": f"{len(skill.description.strip())} characters",
        "line-count": f"{line_count(skill.raw_content)} lines",
    }
    return (f"{code}: {text}" for code, text in shown.items() if code not in failed)
