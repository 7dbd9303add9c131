"""Whether the variables are set that the executors of a plan take their credentials from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vally.errors import VallyError
from vally.model.evalspec import Diagnostic
from vally.run.providers import resolve_provider
from vally.text.display import single_line

if TYPE_CHECKING:
    from vally.run.plan import Plan
    from vally.run.preparation import Preparation

CREDENTIALS = "executor-credentials"


def credential_problems(plan: Plan, ready: Preparation, environ: Mapping[str, str]) -> list[Diagnostic]:
    """One error per executor config whose `provider` names a variable that is not set."""
    from vally.model.provider_settings import ProviderSettings

    found = []
    for evaluation in plan.evals:
        config = ready.configs.get(evaluation.planned.index)
        provider = getattr(config, "provider", None)
        if not isinstance(provider, ProviderSettings):
            continue
        try:
            resolve_provider(provider.config(), environ)
        except VallyError as error:
            message = f"executor '{evaluation.executor.name}': provider.{error.where}: {error.message}"
            named = evaluation.spec.defaults.executor
            place = named.position if named is not None else None
            found.append(
                Diagnostic(
                    code=CREDENTIALS,
                    level="error",
                    message=message,
                    file=place.file if place else evaluation.planned.eval_file_path,
                    line=place.line if place else None,
                    column=place.column if place else None,
                    hint="\n".join(map(single_line, error.hints)) or None,
                )
            )
    return list(dict.fromkeys(found))
