"""The judge `openai`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import JudgeSpec, hookimpl

vally_api = 1


@hookimpl
def vally_judges() -> Iterable[JudgeSpec]:
    """Yield the judge of this distribution."""
    yield JudgeSpec(
        name="openai",
        summary="asks models of OpenAI, Azure and compatible servers",
        factory="vally_judge_openai.judge:OpenAiJudge",
        provider_types=("openai", "azure"),
    )
