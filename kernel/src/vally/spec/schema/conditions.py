"""What holds between the keys of one mapping, as far as JSON Schema can say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vally.spec.experiment_keys import EXPERIMENT
from vally.spec.golden import GOLDEN_TEXT
from vally.spec.project import SUITE
from vally.spec.schema.writer import exactly_one, has
from vally.spec.scoring import SCORING
from vally.spec.sections import Table
from vally.spec.simulation import TOOL_OVERRIDE
from vally.spec.spec_keys import SPEC
from vally.spec.stimuli import STIMULUS, UNNAMED

_GOLDEN_CONFLICT = {"not": has("golden_patch", "golden_command")}
_SOME_STIMULI = {
    "anyOf": [
        {"required": ["stimuli"], "properties": {"stimuli": {"type": "array", "minItems": 1}}},
        has("stimuli_from"),
    ],
}
_ALL_ZERO = {"minProperties": 1, "additionalProperties": {"enum": [0]}}
_SOME_WEIGHT = {"not": {**has("weights"), "properties": {"weights": {"type": "object", **_ALL_ZERO}}}}
# Here null is an answer, not the absence of one.
_ONE_ANSWER = {"oneOf": [{"required": ["result"]}, has("error")]}
_VARY = {"if": has("variants"), "then": has("vary"), "else": {"not": has("vary")}}
_TWO_VARIANTS = {"properties": {"variants": {"minProperties": 2, "propertyNames": {"minLength": 1, "maxLength": 120}}}}

_CONDITIONS: tuple[tuple[Table, Mapping[str, Any]], ...] = (
    (EXPERIMENT, exactly_one("variants", "matrix")),
    (EXPERIMENT, _TWO_VARIANTS),
    (EXPERIMENT, _VARY),
    (SPEC, _SOME_STIMULI),
    (STIMULUS, exactly_one("prompt", "turns")),
    (STIMULUS, _GOLDEN_CONFLICT),
    (UNNAMED, exactly_one("prompt", "turns")),
    (UNNAMED, _GOLDEN_CONFLICT),
    (GOLDEN_TEXT, exactly_one("path", "inline")),
    (TOOL_OVERRIDE, _ONE_ANSWER),
    (SUITE, {"anyOf": [has("filter"), has("evals")]}),
    (SCORING, _SOME_WEIGHT),
)


def conditions_of(table: Table) -> list[Mapping[str, Any]]:
    """The conditions on a mapping that this table reads."""
    return [condition for other, condition in _CONDITIONS if other is table]
