"""Which stimulus of which spec a recorded trajectory belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally.errors import VallyError
from vally.model.turns import comparable
from vally.run.imports.imported import prompts_of
from vally.text.names import name_key

if TYPE_CHECKING:
    from vally.model.evalspec import EvalSpec, Stimulus
    from vally.model.trajectory import Trajectory
    from vally.run.regrading.source import Document


@dataclass(frozen=True, slots=True)
class Match:
    """A stimulus of a spec, by their positions."""

    spec: int
    stimulus: int


class Matcher:
    """Finds stimuli by name for records, by prompt for imported trajectories."""

    def __init__(self, specs: Sequence[EvalSpec]) -> None:
        self._specs = specs
        self._by_name: dict[str, list[Match]] = {}
        for match, stimulus in self._all():
            self._by_name.setdefault(name_key(stimulus.name), []).append(match)

    def _all(self) -> Iterable[tuple[Match, Stimulus]]:
        for number, spec in enumerate(self._specs):
            for position, stimulus in enumerate(spec.stimuli):
                yield Match(number, position), stimulus

    def matches(self) -> list[Match]:
        """All stimuli."""
        return [match for match, _ in self._all()]

    def stimulus(self, match: Match) -> Stimulus:
        """The stimulus of a match."""
        return self._specs[match.spec].stimuli[match.stimulus]

    def of_record(self, document: Document) -> Match | None:
        """The stimulus of a record; None when there is none, or several and the record does not tell which."""
        found = self._by_name.get(name_key(document.stimulus), [])
        if len(self._specs) == 1:
            return found[0] if found else None
        same_file = [item for item in found if self._specs[item.spec].display_path == document.eval_file]
        same_name = [item for item in found if self._specs[item.spec].name == document.eval_name]
        if not document.eval_file and not document.eval_name:
            same_name = found
        for candidates in (same_file, same_name):
            if candidates:
                return candidates[0] if len(candidates) == 1 else None
        return None

    def of_prompts(self, trajectory: Trajectory, among: Sequence[Match]) -> tuple[Match, str | None]:
        """The stimulus whose prompts an imported trajectory has, and a warning; raises `VallyError` when unclear."""
        texts = [comparable(text) for text in prompts_of(trajectory)]
        fitting = [match for match in among if _follows(texts, self.stimulus(match).turns)]
        if len(fitting) == 1:
            return fitting[0], None
        names = ", ".join(dict.fromkeys(self.stimulus(match).name for match in fitting or among))
        if fitting:
            raise VallyError(
                "its prompt is that of several stimuli", code="ambiguous-stimulus", hints=[f"give --stimulus: {names}"]
            )
        if len(among) == 1:
            return among[0], f"its prompt is not that of the stimulus '{names}'"
        raise VallyError(
            "no stimulus has its prompt", code="unknown-stimulus", hints=[f"give --stimulus: {names or 'none is left'}"]
        )


def _follows(texts: Sequence[str], prompts: Sequence[str]) -> bool:
    """Whether the prompts were sent in this order, the first of them first."""
    if not texts or not prompts or texts[0] != comparable(prompts[0]):
        return False
    remaining = iter(texts)
    return all(comparable(prompt) in remaining for prompt in prompts)
