"""The JSON document that an entry looks at: the answer, or one file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vally import GraderInput, GraderResult, UnreadableFile, VallyError, escape_glob
from vally_grader_json.config import DocumentConfig
from vally_grader_json.parsing import InvalidJson, parse_answer, parse_json


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document; `label` is what evidence calls it."""

    label: str
    value: Any
    metadata: dict[str, Any] = field(default_factory=dict)


class NoDocument(VallyError):
    """There is nothing to look at; the message is the evidence."""

    def __init__(self, message: str, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.metadata = metadata or {}

    def result(self, name: str) -> GraderResult:
        """The verdict on the agent that this is."""
        return GraderResult.verdict(False, self.message, name=name, metadata=self.metadata)


def read_document(input: GraderInput[Any]) -> Document:
    """The document of an entry; raises `NoDocument`."""
    config: DocumentConfig = input.config
    if config.path is not None:
        return _read_file(input, config.path)
    try:
        return Document("Output", parse_answer(input.trajectory.output))
    except InvalidJson as error:
        raise NoDocument(f"Output is not valid JSON: {error}") from None


def _read_file(input: GraderInput[Any], path: str) -> Document:
    matches = input.files.resolve(escape_glob(path))
    label, metadata = f"File '{path}'", {"root": matches.origin, "path": path}
    files = matches.files()
    if not files:
        raise NoDocument(f"{label} not found", metadata)
    try:
        return Document(label, parse_json(input.files.read_text(matches, files[0])), metadata)
    except UnreadableFile as error:
        text = f"Indeterminate: could not read 1 file(s) matching '{path}': {error.path} ({error.reason})"
        raise NoDocument(text, metadata) from None
    except InvalidJson as error:
        raise NoDocument(f"{label} is not valid JSON: {error}", metadata) from None
