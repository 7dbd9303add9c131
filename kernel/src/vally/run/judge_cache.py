"""Valid answers of judges, kept between runs: one JSON file for each question."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.model.jsonio import canonical_json
from vally.run.atomic import atomic_write
from vally.run.judging import JudgeReply

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.run.judging import JudgeRequest

VERSION = 1
_BLOCK = 2**20
_CREDENTIAL_KEYS = ("api_key", "bearer_token", "api_key_env", "bearer_token_env", "headers")


def _unchanged(value: Any) -> Any:
    return value


class JudgeCache:
    """Answers below one directory, by a digest of everything the answer depends on.

    `redact` is applied to what is written. The methods block; they may be called from several threads and processes.
    """

    def __init__(self, directory: Path, *, redact: Callable[[Any], Any] = _unchanged) -> None:
        self._directory = directory
        self._redact = redact
        self._log = logging.getLogger("vally.judge")
        self._told = False

    def key(self, judge: str, provider: ProviderConfig | None, request: JudgeRequest) -> str:
        """The key of a question: judge, endpoint, model, effort, messages, tool, and the content of the evidence.

        Credentials are no part of it, nor are headers, which may hold them.
        """
        facts = {
            "version": VERSION,
            "judge": judge,
            "provider": _endpoint(provider),
            "model": request.model,
            "effort": request.reasoning_effort,
            "system": request.system_message,
            "user": request.user_message,
            "tool": [request.tool.name, request.tool.description, request.tool.parameters],
            "evidence": [[_name(path, request.evidence_dir), _digest(path)] for path in request.evidence_files],
        }
        return hashlib.sha256(canonical_json(facts).encode("utf-8", "surrogatepass")).hexdigest()

    def read(self, key: str, request: JudgeRequest) -> JudgeReply | None:
        """The stored answer, when there is one that can be read and is still valid."""
        try:
            stored = json.loads(self._path(key).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        args = stored.get("args") if isinstance(stored, dict) and stored.get("version") == VERSION else None
        if not isinstance(args, dict) or request.check(args) is not None:
            return None
        return JudgeReply(args=args, model=str(stored.get("model") or request.model), cache="hit")

    def write(self, key: str, reply: JudgeReply) -> None:
        """Store a valid answer; a directory that cannot be written is a warning, once."""
        content = {"version": VERSION, "model": reply.model, "args": self._redact(_plain(reply.args))}
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            atomic_write(path, json.dumps(content, ensure_ascii=True) + "\n", mode=0o600)
        except OSError as error:
            if not self._told:
                self._told = True
                self._log.warning("judge cache: %s cannot be written: %s", path.parent, error.strerror or error)

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key[2:]}.json"


def _endpoint(provider: ProviderConfig | None) -> dict[str, Any] | None:
    if provider is None:
        return None
    from dataclasses import fields

    names = [item.name for item in fields(provider) if item.name not in _CREDENTIAL_KEYS]
    return {name: _plain(getattr(provider, name)) for name in names}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _name(path: Path, directory: Path | None) -> str:
    """How the judge knows a file; the directory itself is another one each time."""
    if directory is not None and path.is_relative_to(directory):
        return path.relative_to(directory).as_posix()
    return path.name


def _digest(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()
