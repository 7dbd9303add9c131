"""What type checkers see of `vally_grader_prompt`: the same names as the table in `__init__.py`."""

from vally_grader_prompt.config import JudgedConfig as JudgedConfig
from vally_grader_prompt.config import NotBlank as NotBlank
from vally_grader_prompt.config import UnitNumber as UnitNumber
from vally_grader_prompt.criteria import Criterion as Criterion
from vally_grader_prompt.grading import Grade as Grade
from vally_grader_prompt.grading import asked_metadata as asked_metadata
from vally_grader_prompt.grading import criteria_of as criteria_of
from vally_grader_prompt.grading import evidence_of as evidence_of
from vally_grader_prompt.grading import grade_question as grade_question
from vally_grader_prompt.judging import JudgeFailed as JudgeFailed
from vally_grader_prompt.judging import Question as Question
from vally_grader_prompt.judging import ask as ask
from vally_grader_prompt.judging import present as present
from vally_grader_prompt.sources import no_evidence as no_evidence
