"""What a cassette holds of requests and responses: without paths of one trial, and without what changes each time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vally import ExecutorError, canonical_json

_CLIENT = "{{vally:client}}"
_TRIAL_ID = "{{vally:trial-id}}"
_TIME = re.compile(r"<current_datetime>[^<]*</current_datetime>")
_UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])")
_OF_ONE_SESSION = frozenset({"prompt_cache_key", "safety_identifier"})
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


class Places:
    """The paths of one trial, and the tokens that stand for them in a cassette.

    `client` finds the directory of the runtime process, which lies in that of the trial and is made later.
    """

    def __init__(self, paths: Mapping[str, Path], trial_dir: Path, trial_id: str) -> None:
        found = {str(path): f"{{{{vally:{name}}}}}" for name, path in paths.items()}
        real = {os.path.realpath(path): token for path, token in found.items()}
        for path in (*found, *real):
            if not _PLAIN.fullmatch(path):
                message = f"cassettes need paths of plain ASCII letters without quotes and backslashes, not {path!r}"
                raise ExecutorError(message, code="executor-config")
        self._trial_dir = trial_dir
        self._trial_id = trial_id
        self._tokens = dict(sorted({**real, **found}.items(), key=lambda item: -len(item[0])))
        self._paths = {token: path for path, token in found.items()}
        roots = "|".join(re.escape(path) for path in {str(trial_dir), os.path.realpath(trial_dir)})
        self._client = re.compile(rf"(?:{roots})/copilot-\d+")

    def without_paths(self, text: str) -> str:
        """The text with tokens for paths and the id of the trial."""
        text = self._client.sub(_CLIENT, text)
        for path, token in self._tokens.items():
            text = text.replace(path, token)
        return text.replace(self._trial_id, _TRIAL_ID)

    def with_paths(self, text: str) -> str:
        """The text with the paths of this trial in the place of tokens."""
        if _CLIENT in text:
            made = sorted(self._trial_dir.glob("copilot-*"))
            text = text.replace(_CLIENT, str(made[0] if made else self._trial_dir / "copilot-0"))
        for token, path in self._paths.items():
            text = text.replace(token, path)
        return text.replace(_TRIAL_ID, self._trial_id)


def request_hash(text: str) -> str:
    """The hash of a request without paths, in which times and random ids do not count."""
    steady = _UUID.sub("<id>", _TIME.sub("<time>", text))
    with contextlib.suppress(ValueError, RecursionError):
        body = json.loads(steady)
        if isinstance(body, dict):
            body = {key: value for key, value in body.items() if key not in _OF_ONE_SESSION}
        steady = canonical_json(body)
    return hashlib.sha256(steady.encode("utf-8", "replace")).hexdigest()


def request_shape(path: str, text: str) -> dict[str, Any]:
    """Path, roles of the messages and names of the offered tools of a request in any of the dialects."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return {"path": path, "roles": [], "tools": []}
    messages = body.get("messages", body.get("input"))
    return {
        "path": path,
        "roles": [str(item.get("role") or item.get("type")) for item in _objects(messages)],
        "tools": [str((tool.get("function") or tool).get("name")) for tool in _objects(body.get("tools"))],
    }


def shape_difference(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """What differs between two shapes, in words; None when they are equal."""
    for key in ("path", "tools", "roles"):
        if recorded.get(key) != asked.get(key):
            return f"{key} {_shown(asked.get(key))}, recorded {_shown(recorded.get(key))}"
    return None


def joined(text: str, content_type: str) -> str:
    """The body of a response whose fragments of one text are one, so that no path is cut in two."""
    if "text/event-stream" not in content_type:
        return text
    merged: list[tuple[str | None, Any]] = []
    for name, data in _events(text):
        before = merged[-1] if merged else None
        if before is not None and before[0] == name and _append(before[1], data):
            continue
        merged.append((name, data))
    return "".join(_event_text(name, data) for name, data in merged)


def _events(text: str) -> Iterator[tuple[str | None, Any]]:
    for block in re.split(r"\r?\n\r?\n", text):
        lines = block.splitlines()
        name = next((line[6:].strip() for line in lines if line.startswith("event:")), None)
        data = "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))
        if data:
            try:
                yield name, json.loads(data)
            except (ValueError, RecursionError):
                yield name, data


def _event_text(name: str | None, data: Any) -> str:
    told = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    lines = "".join(f"data: {line}\n" for line in told.split("\n"))
    return (f"event: {name}\n" if name else "") + lines + "\n"


def _append(before: Any, data: Any) -> bool:
    """Add a fragment to the one before it, if both belong to one text."""
    for finder in _FRAGMENTS:
        first, second = finder(before), finder(data)
        if first is not None and second is not None and first[:2] == second[:2]:
            holder, key = first[2], first[1]
            holder[key] += second[2][key]
            return True
    return False


Fragment = tuple[Any, str, dict[str, Any]]
"""What the fragment belongs to, the key of its text, and the object that holds the text."""


def _of_completions(data: Any) -> Fragment | None:
    choices = _objects(data.get("choices")) if isinstance(data, dict) else []
    if len(choices) != 1 or choices[0].get("finish_reason") or data.get("usage"):
        return None
    delta = choices[0].get("delta")
    if not isinstance(delta, dict):
        return None
    calls = _objects(delta.get("tool_calls"))
    if len(calls) == 1 and not delta.get("content"):
        function = calls[0].get("function")
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            return ("call", calls[0].get("index")), "arguments", function
    texts = [key for key in ("content", "reasoning_content", "reasoning") if isinstance(delta.get(key), str)]
    if len(texts) != 1 or calls:
        return None
    return ("text", choices[0].get("index")), texts[0], delta


def _of_responses(data: Any) -> Fragment | None:
    kind = data.get("type") if isinstance(data, dict) else None
    if not isinstance(kind, str) or not kind.endswith(".delta") or not isinstance(data.get("delta"), str):
        return None
    return (kind, data.get("item_id"), data.get("output_index"), data.get("content_index")), "delta", data


def _of_anthropic(data: Any) -> Fragment | None:
    delta = data.get("delta") if isinstance(data, dict) and data.get("type") == "content_block_delta" else None
    if not isinstance(delta, dict):
        return None
    key = next((key for key in ("partial_json", "text", "thinking") if isinstance(delta.get(key), str)), None)
    return None if key is None else ((delta.get("type"), data.get("index")), key, delta)


_FRAGMENTS: Sequence[Callable[[Any], Fragment | None]] = (_of_completions, _of_responses, _of_anthropic)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _shown(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
