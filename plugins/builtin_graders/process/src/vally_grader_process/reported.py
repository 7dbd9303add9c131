"""The JSON object that a grading program prints."""

from __future__ import annotations

import json
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vally import GraderResult, sanitise


class BadReport(Exception):
    """The output is no valid report; `evidence` says so to the reader, `details` what exactly is wrong."""

    def __init__(self, evidence: str, details: str | None = None) -> None:
        super().__init__(evidence)
        self.evidence = evidence
        self.details = details or evidence


class Reported(BaseModel):
    """A result as a program reports it; unknown keys are dropped, null counts as absent."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    passed: bool
    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    evidence: str
    name: str | None = None
    kind: Literal["code", "llm", "human"] | None = None
    label: Literal["correct", "incorrect"] | None = None
    status: Literal["error"] | None = None
    metadata: dict[str, Any] | None = None
    details: list[Reported] | None = None

    @model_validator(mode="after")
    def _check_status(self) -> Reported:
        if self.passed and self.status == "error":
            raise ValueError("'passed' is true although 'status' is 'error'")
        return self

    def detail(self) -> GraderResult:
        """This result as a sub-check of another one."""
        fields: dict[str, Any] = {"name": self.name or "", "metadata": self.metadata, "details": self.sub_results()}
        if self.status == "error":
            return GraderResult.error(self.evidence, kind="program", result_kind=self.kind or "code", **fields)
        return GraderResult.verdict(self.passed, self.evidence, score=self.score, kind=self.kind or "code", **fields)

    def sub_results(self) -> list[GraderResult] | None:
        """The reported details as results."""
        return None if self.details is None else [detail.detail() for detail in self.details]


def parse_report(text: str) -> Reported:
    """Read what a program printed, blanks around it removed; raises BadReport."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadReport(
            f"Grader returned unparseable JSON output on stdout: SyntaxError: {sanitise(str(error))}"
        ) from None
    try:
        return Reported.model_validate(value)
    except ValidationError as error:
        raise BadReport("Grader output did not match schema", "; ".join(_problems(error))) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _problems(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(str(part) for part in item['loc']) or 'output'}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    ]
