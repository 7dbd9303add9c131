"""The schemas of this checkout under a real validator, and documents as editors see them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from checkout import ROOT
from jsonschema import Draft202012Validator

import vally
from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import Source
from vally.spec.reader import read_yaml
from vally.spec.shapes import read_plain
from vally.testing import run_cli

NAMES = {"eval": "eval.yaml", "config": ".vally.yaml", "experiment": "experiment.yaml"}


@cache
def schema(kind: str) -> dict[str, Any]:
    result = run_cli(["schema", kind], cwd=ROOT / "examples")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def instance(text: str) -> Any:
    """The document as an editor sees it: the core types, placeholders as they stand."""
    source = Source("file.yaml", Path("file.yaml"), Path())
    collector = Collector()
    node = read_yaml(text.encode(), source, collector)
    assert not collector.has_errors, collector.ordered()
    return None if node is None else read_plain(node, Place(), collector)


def problems(kind: str, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema(kind)).iter_errors(value)]


def found_by_vally(kind: str, text: str, folder: Path) -> list[vally.Diagnostic]:
    path = folder / NAMES[kind]
    path.write_text(text)
    host = vally.PluginHost()
    if kind == "config":
        return list(vally.read_project(path).diagnostics)
    if kind == "eval":
        return list(vally.read_eval_spec(path, host=host, lint=True).diagnostics)
    return list(vally.read_experiment_config(path, host=host, lint=True).diagnostics)


def errors(kind: str, text: str, folder: Path) -> set[str]:
    return {item.code for item in found_by_vally(kind, text, folder) if item.level == "error"}
