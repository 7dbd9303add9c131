"""Endpoints of models: the secrets their variables hold, and what of them may be written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vally.errors import VallyError

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.run.plan import Plan

_VARIABLE_KEYS = ("apiKeyEnv", "bearerTokenEnv")
_SHORTEST_SECRET = 8
_KEY_HEADERS = {"azure": "api-key", "anthropic": "x-api-key"}
_PROTOCOL_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)


def resolve_provider(provider: ProviderConfig, environ: Mapping[str, str]) -> ProviderConfig:
    """The provider with the values of its variables; raises `VallyError` that names a variable which is not set."""
    return replace(
        provider,
        api_key=_value("apiKeyEnv", provider.api_key_env, environ),
        bearer_token=_value("bearerTokenEnv", provider.bearer_token_env, environ),
    )


def _value(key: str, name: str | None, environ: Mapping[str, str]) -> str | None:
    if name is None:
        return None
    value = environ.get(name, "").strip()
    if not value:
        raise VallyError(
            f"environment variable '{name}' is not set", where=key, hints=[f"set {name}, or name another in {key}"]
        )
    return value


def provider_secrets(provider: ProviderConfig) -> tuple[str, ...]:
    """Values that must not be shown: key, token, and whatever headers hold."""
    headers = (value for value in provider.headers.values() if len(value) >= _SHORTEST_SECRET)
    return tuple(value for value in (provider.api_key, provider.bearer_token, *headers) if value)


def provider_headers(provider: ProviderConfig) -> dict[str, str]:
    """The headers by which a resolved provider wants to be asked, by lower-case name; written ones win."""
    headers: dict[str, str] = {}
    if provider.bearer_token is not None:
        headers["authorization"] = f"Bearer {provider.bearer_token}"
    elif provider.api_key is not None and provider.type in _KEY_HEADERS:
        headers[_KEY_HEADERS[provider.type]] = provider.api_key
    elif provider.api_key is not None:
        headers["authorization"] = f"Bearer {provider.api_key}"
    return {**headers, **{name.lower(): value for name, value in provider.headers.items()}}


def outgoing_headers(sent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The headers that may leave: those of the protocol, and `own` ones.

    Client libraries add credentials, organisations and headers that they find in the process environment. A spec that
    names an endpoint must not get them. Names are compared in lower case.
    """
    wanted = {name.lower(): value for name, value in own.items()}
    kept = {name: value for name, value in sent.items() if name.lower() in _PROTOCOL_HEADERS}
    return {**{name: value for name, value in kept.items() if name.lower() not in wanted}, **wanted}


def same_provider_key(provider: ProviderConfig | None) -> object:
    """Equal for equal providers, and hashable; it may hold secrets and stays in memory."""
    if provider is None:
        return None
    from dataclasses import fields

    from vally.model.jsonio import canonical_json

    facts = {item.name: getattr(provider, item.name) for item in fields(provider)}
    return canonical_json({name: dict(value) if isinstance(value, Mapping) else value for name, value in facts.items()})


def credential_variables(plan: Plan) -> frozenset[str]:
    """Names of all variables that endpoints of agents and judges in a plan take credentials from."""
    names: set[str] = set()
    for evaluation in plan.evals:
        provider = evaluation.spec.defaults.judge_provider
        if provider is not None:
            names |= {name for name in (provider.api_key_env, provider.bearer_token_env) if name}
        names.update(_named(evaluation.executor.config))
    return frozenset(names)


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in _VARIABLE_KEYS and isinstance(item, str):
                yield item
            else:
                yield from _named(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _named(item)
