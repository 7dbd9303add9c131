"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_prompt"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="prompt",
        summary="a model scores the run against the rubric",
        factory=f"{_PACKAGE}.prompt:Prompt",
        config=f"{_PACKAGE}.config:PromptConfig",
        kind="llm",
        determinism="llm",
        cost="high",
        requires_judge=True,
        comparable=True,
        hints=(
            "pairwise: grade each run with 'prompt' and compare the runs with 'vally compare'",
            "semantic-similarity: no installed plugin compares meanings; 'prompt' lets a model judge them",
        ),
    )
