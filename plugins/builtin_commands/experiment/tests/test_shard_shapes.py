"""What a shard directory must hold before anything relies on it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from vally import VallyError
from vally_command_experiment.shard_checks import read_shard

DOCUMENTS: dict[str, Any] = {
    "shard-manifest.json": {
        "experiment": {"runId": "r", "name": "n", "baseline": None, "variantNames": ["a", "b"]},
        "shard": {"index": 1, "count": 1, "strategy": "by-stimulus"},
        "selectedShardKeys": ["k"],
        "completedShardKeys": ["k"],
    },
    "plan-snapshot.json": {
        "evals": [
            {
                "evalName": "e", "evalFile": "e.yaml", "variant": "a", "model": None, "runs": 1, "threshold": 0.5,
                "plannedStimulusNames": ["s"], "stimuli": [{"name": "s", "graders": []}],
            }
        ]
    },
    "experiment-summary.json": {
        "contaminated": [{"variant": "a", "evalFile": "e.yaml", "model": "m", "reasons": ["skill 's'"]}]
    },
}  # fmt: skip


def write(directory: Path, documents: dict[str, Any]) -> Path:
    for name, document in documents.items():
        (directory / name).write_text(document if isinstance(document, str) else json.dumps(document))
    return directory


def test_a_shard_directory_is_read(tmp_path: Path) -> None:
    shard = read_shard(write(tmp_path, DOCUMENTS), "shard")
    assert (shard.index, shard.selected, shard.contaminated[0]["variant"]) == (1, ["k"], "a")


def test_a_shard_without_a_summary_is_read(tmp_path: Path) -> None:
    documents = {name: DOCUMENTS[name] for name in ("shard-manifest.json", "plan-snapshot.json")}
    assert read_shard(write(tmp_path, documents), "shard").contaminated is None


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize(
    ("text", "message"), [("{", "is not valid JSON"), ("[]", "is no JSON object"), ("null", "is no JSON object")]
)
def test_a_damaged_document_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, {**DOCUMENTS, name: text})
    with pytest.raises(VallyError, match="shard is not a shard directory") as caught:
        read_shard(tmp_path, "shard")
    assert caught.value.hints == (f"{name} {message}",)


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("shard-manifest.json", ["experiment"], 1, "experiment must be an object"),
        ("shard-manifest.json", ["experiment", "runId"], None, "experiment.runId must be a string"),
        ("shard-manifest.json", ["experiment", "baseline"], 1, "experiment.baseline must be a string or null"),
        (
            "shard-manifest.json", ["experiment", "variantNames"], [1],
            "experiment.variantNames must be a list of strings",
        ),
        ("shard-manifest.json", ["shard"], "x", "shard must be an object"),
        ("shard-manifest.json", ["shard", "index"], True, "shard.index must be a whole number"),
        ("shard-manifest.json", ["selectedShardKeys"], [{}], "selectedShardKeys must be a list of strings"),
        ("shard-manifest.json", ["completedShardKeys"], [[]], "completedShardKeys must be a list of strings"),
        ("plan-snapshot.json", ["evals"], [1], "evals must be a list of objects"),
        ("plan-snapshot.json", ["evals", 0, "evalFile"], None, "evals[0].evalFile must be a string"),
        ("plan-snapshot.json", ["evals", 0, "model"], 1, "evals[0].model must be a string or null"),
        ("plan-snapshot.json", ["evals", 0, "runs"], "x", "evals[0].runs must be a whole number"),
        ("plan-snapshot.json", ["evals", 0, "threshold"], "x", "evals[0].threshold must be a number"),
        ("plan-snapshot.json", ["evals", 0, "stimuli"], None, "evals[0].stimuli must be a list of objects"),
        ("plan-snapshot.json", ["evals", 0, "stimuli", 0, "name"], 1, "evals[0].stimuli[0].name must be a string"),
        (
            "plan-snapshot.json", ["evals", 0, "stimuli", 0, "graders"], 1,
            "evals[0].stimuli[0].graders must be a list of objects",
        ),
        (
            "plan-snapshot.json", ["evals", 0, "plannedStimulusNames"], ["t"],
            "evals[0].plannedStimulusNames must be the names of its stimuli",
        ),
        ("experiment-summary.json", ["contaminated"], 5, "contaminated must be a list of objects"),
        ("experiment-summary.json", ["contaminated", 0, "variant"], 5, "contaminated[0].variant must be a string"),
        (
            "experiment-summary.json", ["contaminated", 0, "reasons"], 5,
            "contaminated[0].reasons must be a list of strings",
        ),
    ],
)  # fmt: skip
def test_a_key_of_another_shape_is_named(tmp_path: Path, name: str, path: list[Any], value: Any, message: str) -> None:
    documents = copy.deepcopy(DOCUMENTS)
    *above, last = path
    holder = documents[name]
    for step in above:
        holder = holder[step]
    holder[last] = value
    with pytest.raises(VallyError, match="shard is not a shard directory") as caught:
        read_shard(write(tmp_path, documents), "shard")
    assert caught.value.hints == (f"{name}: {message}",)
