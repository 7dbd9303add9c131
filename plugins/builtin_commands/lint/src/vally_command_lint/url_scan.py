"""`url-scan`: addresses of the web in Markdown files and scripts of a skill."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vally_command_lint.addresses import Address, Lines, addresses
from vally_command_lint.codes import finding
from vally_command_lint.entry_files import Domain
from vally_command_lint.findings import Check, Finding
from vally_command_lint.piped_downloads import piped_downloads
from vally_command_lint.skill_source import SkillSource

ID = "url-scan"
_SCHEMA_HOST = "schemas.microsoft.com"
_SCRIPT_TAG = re.compile(r"<script\b[^<>]{0,2000}+>", re.IGNORECASE)
_SCRIPT_SOURCE = re.compile(r"""\bsrc\s*=\s*["']?(https?://[^\s"'>]+)""", re.IGNORECASE)
_INTEGRITY = re.compile(r"\bintegrity\s*=", re.IGNORECASE)


def check_addresses(source: SkillSource, domains: Sequence[Domain]) -> Check:
    """Scan every `.md` file and every script."""
    scripts = set(source.scripts)
    scanned = [path for path in source.files if path.lower().endswith(".md") or path in scripts]
    findings: list[Finding] = []
    count = 0
    for path in scanned:
        text = source.text(path)
        if text is not None:
            scan = _Scan(source.shown(path), text, path not in scripts, domains)
            findings += scan.findings()
            count += 1
    noun = "file" if count == 1 else "files"
    return Check(id=ID, findings=tuple(findings), summary=f"{count} {noun} scanned")


@dataclass
class _Scan:
    file: str
    text: str
    markdown: bool
    domains: Sequence[Domain]

    def findings(self) -> list[Finding]:
        """All findings of the file by position."""
        self._lines = Lines(self.text)
        found = list(addresses(self.text))
        every = [*self._unknown(found), *self._unencrypted(found), *self._scripts(), *self._piped()]
        return sorted(every, key=lambda item: (item.line or 0, item.column or 0, item.code))

    def _finding(self, code: str, message: str, offset: int, hint: str | None = None) -> Finding:
        line, column = self._lines.position(offset)
        return finding(code, message, check=ID, file=self.file, line=line, column=column, hint=hint)

    def _unknown(self, found: list[Address]) -> Iterator[Finding]:
        """Once per host; per address where only some paths of a host are known."""
        scoped = {domain.host for domain in self.domains if domain.path}
        seen = set()
        for address in found:
            if any(domain.knows(address.host, address.rest) for domain in self.domains):
                continue
            shown = f"{address.host}{address.rest}" if address.host in scoped else address.host
            if shown not in seen:
                seen.add(shown)
                yield self._finding("external-domain", f"'{shown}' is not a known domain", address.offset)

    def _unencrypted(self, found: list[Address]) -> Iterator[Finding]:
        fenced = _fenced_lines(self.text) if self.markdown else frozenset()
        for address in found:
            if address.is_encrypted or address.host == _SCHEMA_HOST:
                continue
            if self._lines.position(address.offset)[0] not in fenced:
                yield self._finding("http-not-https", f"'{address.text}' is not encrypted", address.offset, "use https")

    def _scripts(self) -> Iterator[Finding]:
        for tag in _SCRIPT_TAG.finditer(self.text):
            source = _SCRIPT_SOURCE.search(tag[0])
            if source and not _INTEGRITY.search(tag[0]) and any(addresses(source[1])):
                problem = f"script '{source[1]}' is loaded without integrity"
                yield self._finding("script-no-sri", problem, tag.start(), "add its integrity hash")

    def _piped(self) -> Iterator[Finding]:
        for offset, command in piped_downloads(self.text, markdown=self.markdown):
            hint = "download, check, then run"
            yield self._finding("pipe-to-shell", f"a shell executes what '{command}' downloads", offset, hint)


def _fenced_lines(text: str) -> frozenset[int]:
    """Numbers of the lines inside fenced code, the fences included."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    return frozenset(
        number + 1 for token in tokens if token.type == "fence" and token.map for number in range(*token.map)
    )
