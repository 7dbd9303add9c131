"""The report as SARIF 2.1.0, for code scanning services."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from vally import Related, __version__
from vally_command_lint.codes import LINT_CODES, title_of
from vally_command_lint.findings import Finding, Level, LintReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE_ID = "SRCROOT"
_LEVELS: Mapping[Level, str] = MappingProxyType({"error": "error", "warning": "warning", "info": "note"})
_DIGITS = re.compile(r"\d+")


def sarif_report(report: LintReport, *, root: Path, cwd: Path) -> dict[str, Any]:
    """One run; files below `root`, the project root, are relative to it, others absolute."""
    findings = list(report.all_findings)
    codes = sorted({item.code for item in findings})
    index = {code: number for number, code in enumerate(codes)}
    usual = {item.code: item.level for item in reversed(findings)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "vally",
                        "version": __version__,
                        "rules": [_rule(code, usual[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(item, index[item.code], root, cwd) for item in findings],
            }
        ],
    }


def _rule(code: str, level: Level) -> dict[str, Any]:
    known = LINT_CODES.get(code)
    return {
        "id": code,
        "shortDescription": {"text": title_of(code)},
        "defaultConfiguration": {"level": _LEVELS[known.level if known else level]},
    }


def _result(item: Finding, index: int, root: Path, cwd: Path) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": index,
        "level": _LEVELS[item.level],
        "message": {"text": f"{item.sentence}\n{item.hint}" if item.hint else item.sentence},
        "partialFingerprints": {"vally/v1": _fingerprint(item)},
    }
    if item.file is not None:
        result["locations"] = [_location(item, item.file, root, cwd)]
    others = [(other, other.file) for other in item.related if other.file is not None]
    if others:
        result["relatedLocations"] = [
            {**_location(other, file, root, cwd), "message": {"text": other.message}} for other, file in others
        ]
    return result


def _location(item: Finding | Related, file: str, root: Path, cwd: Path) -> dict[str, Any]:
    region = {"startLine": item.line or 1, "startColumn": item.column or 1}
    return {"physicalLocation": {"artifactLocation": _artifact(file, root, cwd), "region": region}}


def _fingerprint(item: Finding) -> str:
    """Equal for the same finding after lines were added or removed elsewhere."""
    text = "\n".join((item.code, item.file or "", _DIGITS.sub("", item.message)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _artifact(file: str, root: Path, cwd: Path) -> dict[str, str]:
    path = Path(file)
    if not path.is_absolute():
        inside = root / path
        path = inside if inside.exists() or not (cwd / path).exists() else cwd / path
    if path.is_relative_to(root):
        return {"uri": _encoded(path.relative_to(root).as_posix()), "uriBaseId": BASE_ID}
    return {"uri": path.as_uri()}


def _encoded(path: str) -> str:
    # A colon in the first segment would read as a scheme, so it is encoded too.
    return quote(path, safe="/", errors="surrogateescape")
