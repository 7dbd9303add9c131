"""The shapes of the documents in a shard directory; whoever reads them may rely on what is checked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vally import parse_json

Document = Mapping[str, Any]


def read_document(path: Path) -> Document | None:
    """A JSON object from a file; None when the file is not there. Raises `ValueError` for anything else in it."""
    try:
        document = parse_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ValueError(f"{path.name} is not valid JSON") from error
    if not isinstance(document, Mapping):
        raise ValueError(f"{path.name} is no JSON object")
    return document


def check_manifest(document: Document) -> None:
    """Raise `ValueError` with the first key that is not as a shard manifest has it."""
    experiment, shard = _mapping(document, "experiment"), _mapping(document, "shard")
    for key in ("runId", "name"):
        _check(isinstance(experiment.get(key), str), f"experiment.{key}", "a string")
    _check(isinstance(experiment.get("baseline"), str | None), "experiment.baseline", "a string or null")
    _check(_are_texts(experiment.get("variantNames")), "experiment.variantNames", "a list of strings")
    for key in ("index", "count"):
        _check(_is_count(shard.get(key)), f"shard.{key}", "a whole number")
    for key in ("selectedShardKeys", "completedShardKeys"):
        _check(_are_texts(document.get(key)), key, "a list of strings")


def check_plan(document: Document) -> None:
    """Raise `ValueError` with the first key that is not as a plan snapshot has it."""
    for index, item in enumerate(_mappings(document, "evals", "evals")):
        at = f"evals[{index}]"
        for key in ("evalName", "evalFile", "variant"):
            _check(isinstance(item.get(key), str), f"{at}.{key}", "a string")
        _check(isinstance(item.get("model"), str | None), f"{at}.model", "a string or null")
        _check(_is_count(item.get("runs")), f"{at}.runs", "a whole number")
        for key in ("threshold", "passRate"):
            _check(_is_number(item.get(key, 0)), f"{at}.{key}", "a number")
        for key in ("executor", "judgeModel"):
            _check(isinstance(item.get(key, ""), str), f"{at}.{key}", "a string")
        _check(_are_texts(item.get("plannedStimulusNames")), f"{at}.plannedStimulusNames", "a list of strings")
        for number, stimulus in enumerate(_mappings(item, "stimuli", f"{at}.stimuli")):
            _check(isinstance(stimulus.get("name"), str), f"{at}.stimuli[{number}].name", "a string")
            _mappings(stimulus, "graders", f"{at}.stimuli[{number}].graders")
        named = [stimulus["name"] for stimulus in item["stimuli"]]
        _check(named == item["plannedStimulusNames"], f"{at}.plannedStimulusNames", "the names of its stimuli")


def check_contaminated(document: Document) -> None:
    """Raise `ValueError` when the contaminated arms of an experiment summary cannot be told."""
    for index, item in enumerate(_mappings({"contaminated": [], **document}, "contaminated", "contaminated")):
        for key in ("variant", "evalFile", "model"):
            _check(isinstance(item.get(key), str), f"contaminated[{index}].{key}", "a string")
        _check(_are_texts(item.get("reasons")), f"contaminated[{index}].reasons", "a list of strings")


def _check(is_right: bool, key: str, expected: str) -> None:
    if not is_right:
        raise ValueError(f"{key} must be {expected}")


def _mapping(document: Document, key: str) -> Document:
    value = document.get(key)
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} must be an object")
    return value


def _mappings(document: Document, key: str, name: str) -> Sequence[Document]:
    value = document.get(key)
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ValueError(f"{name} must be a list of objects")
    return value


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
