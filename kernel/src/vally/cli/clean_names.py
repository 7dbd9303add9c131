"""Names that hold a secret lose it before anything is planned: ids, paths and reports are all made of names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vally.model.evalspec import EvalSpec, Stimulus
    from vally.run.redaction import Redactor


def with_clean_names(spec: EvalSpec, redactor: Redactor) -> EvalSpec:
    """The spec with names and display path without known secrets; the same object when there were none."""
    stimuli = tuple(_with_clean_name(stimulus, redactor) for stimulus in spec.stimuli)
    name, path = redactor.text(spec.name), redactor.text(spec.display_path)
    if (name, path) == (spec.name, spec.display_path) and stimuli == spec.stimuli:
        return spec
    return replace(spec, name=name, display_path=path, stimuli=stimuli)


def _with_clean_name(stimulus: Stimulus, redactor: Redactor) -> Stimulus:
    name = redactor.text(stimulus.name)
    return stimulus if name == stimulus.name else replace(stimulus, name=name)
