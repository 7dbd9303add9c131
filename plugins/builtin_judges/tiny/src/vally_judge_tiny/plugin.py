"""The judge `tiny`."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from vally import JudgeSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_judge_tiny"


@hookimpl
def vally_judges() -> Iterator[JudgeSpec]:
    """Yield the judge of this distribution."""
    yield JudgeSpec(
        name="tiny",
        summary="a very small model on this machine, for demonstrations: its scores are chance",
        factory=f"{_PACKAGE}.judge:TinyJudge",
        config=f"{_PACKAGE}.config:TinyConfig",
        provider_types=("tiny",),
        metadata=MappingProxyType({"demo": True}),
        notice="judge 'tiny' is a demonstration; its scores say nothing about quality",
    )
