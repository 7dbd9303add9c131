"""Whether the credentials of a plan's executors are there, and whether agents would get them without need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from vally.errors import VallyError
from vally.model.evalspec import Diagnostic
from vally.run.providers import resolve_provider
from vally.text.display import single_line

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.run.agent_network import AgentNetwork
    from vally.run.plan import EvalPlan, Plan
    from vally.run.preparation import Preparation

CREDENTIALS = "executor-credentials"
EXPOSED = "exposed-credentials"


def credential_problems(plan: Plan, ready: Preparation, environ: Mapping[str, str]) -> list[Diagnostic]:
    """One error per executor config whose `provider` names a variable that is not set."""
    found = []
    for evaluation, provider in _providers(plan, ready):
        try:
            resolve_provider(provider, environ)
        except VallyError as error:
            message = f"executor '{evaluation.executor.name}': provider.{error.where}: {error.message}"
            found.append(_diagnostic(evaluation, CREDENTIALS, message, "\n".join(map(single_line, error.hints))))
    return list(dict.fromkeys(found))


def exposed_credentials(
    plan: Plan, ready: Preparation, environ: Mapping[str, str], network: AgentNetwork
) -> list[Diagnostic]:
    """One warning per variable that would bring an agent the credential which its backend keeps away from it.

    In the network `model` requests get their credential on the way; with any other it may be the agent that needs it.
    """
    found = []
    for evaluation, provider in _providers(plan, ready) if network == "model" else ():
        names = filter(None, (provider.api_key_env, provider.bearer_token_env))
        secrets = {environ.get(name, "").strip() for name in names} - {""}
        for where, variable in _handed_on(evaluation, ready, environ, secrets):
            message = (
                f"executor '{evaluation.executor.name}': {where} gives the agent '{variable}' with the credential of "
                "its 'provider', which the network 'model' would keep from it"
            )
            hint = "leave the variable out: vally adds the credential to the requests of the agent"
            found.append(_diagnostic(evaluation, EXPOSED, message, hint, level="warning"))
    return list(dict.fromkeys(found))


def _providers(plan: Plan, ready: Preparation) -> Iterator[tuple[EvalPlan, ProviderConfig]]:
    from vally.model.provider_settings import ProviderSettings

    for evaluation in plan.evals:
        provider = getattr(ready.configs.get(evaluation.planned.index), "provider", None)
        if isinstance(provider, ProviderSettings):
            yield evaluation, provider.config()


def _handed_on(
    evaluation: EvalPlan, ready: Preparation, environ: Mapping[str, str], secrets: set[str]
) -> Iterator[tuple[str, str]]:
    """What brings a secret into the environment of an agent, and the variable that then holds it."""
    config = ready.configs.get(evaluation.planned.index)
    for name in getattr(config, "pass_env", None) or ():
        if environ.get(name, "").strip() in secrets:
            yield "'passEnv'", name
    yield from (("'env'", name) for name in _holding(getattr(config, "env", None) or {}, secrets))
    for stimulus in evaluation.stimuli:
        for name in _holding(stimulus.merged_environment.env, secrets):
            yield f"the environment of stimulus '{stimulus.name}'", name


def _holding(variables: Mapping[str, str], secrets: set[str]) -> Iterator[str]:
    return (name for name, value in variables.items() if any(secret in value for secret in secrets))


def _diagnostic(
    evaluation: EvalPlan, code: str, message: str, hint: str, level: Literal["error", "warning"] = "error"
) -> Diagnostic:
    named = evaluation.spec.defaults.executor
    place = named.position if named is not None else None
    return Diagnostic(
        code=code,
        level=level,
        message=message,
        file=place.file if place else evaluation.planned.eval_file_path,
        line=place.line if place else None,
        column=place.column if place else None,
        hint=hint or None,
    )
