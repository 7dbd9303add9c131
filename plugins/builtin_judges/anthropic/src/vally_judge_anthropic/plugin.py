"""The judge `anthropic`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import JudgeSpec, hookimpl

vally_api = 1


@hookimpl
def vally_judges() -> Iterable[JudgeSpec]:
    """Yield the judge of this distribution."""
    yield JudgeSpec(
        name="anthropic",
        summary="asks models of Anthropic and compatible servers",
        factory="vally_judge_anthropic.judge:AnthropicJudge",
        provider_types=("anthropic",),
    )
