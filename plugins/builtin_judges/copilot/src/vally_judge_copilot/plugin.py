"""The judge `copilot`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import JudgeSpec, hookimpl

vally_api = 1


@hookimpl
def vally_judges() -> Iterable[JudgeSpec]:
    """Yield the judge of this distribution."""
    yield JudgeSpec(
        name="copilot",
        summary="asks models of GitHub Copilot, with your subscription",
        factory="vally_judge_copilot.judge:CopilotJudge",
        supports_files=True,
        blocking=False,
    )
