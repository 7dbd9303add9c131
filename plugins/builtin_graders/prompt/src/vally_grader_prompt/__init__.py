"""Grader plugin: grading by a model with a rubric; and what other graders that ask judges may build on.

Others use the names of this package only, not those of its modules. Each is imported when it is first used.

| names | what they are for |
|---|---|
| `JudgedConfig`, `NotBlank`, `UnitNumber` | base of a config, and types of its fields |
| `Criterion`, `criteria_of` | what is scored: the rubric of the stimulus, else the default |
| `evidence_of`, `no_evidence` | what the judge reads, and what an error says when there is none |
| `Question`, `grade_question` | what every judge of an entry is asked alike |
| `present`, `ask`, `Grade`, `JudgeFailed` | asking one judge: its grade, or why there is none |
| `asked_metadata` | what is recorded of a judge before it answers |
"""

from __future__ import annotations

from vally import lazy_names

_NAMES = {
    "vally_grader_prompt.config": "JudgedConfig NotBlank UnitNumber",
    "vally_grader_prompt.criteria": "Criterion",
    "vally_grader_prompt.grading": "Grade asked_metadata criteria_of evidence_of grade_question",
    "vally_grader_prompt.judging": "JudgeFailed Question ask present",
    "vally_grader_prompt.sources": "no_evidence",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, globals(), _NAMES)
