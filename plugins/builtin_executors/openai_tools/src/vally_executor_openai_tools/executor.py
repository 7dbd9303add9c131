"""Running a small agent of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio

from vally import (
    Capabilities,
    ExecutorError,
    ExecutorOptions,
    OptionalParameters,
    ProviderConfig,
    RunContext,
    Stimulus,
    Trajectory,
    VallyError,
    check_offered_skills,
    provider_headers,
    resolve_provider,
)
from vally_executor_openai_tools.config import OpenAiToolsConfig

if TYPE_CHECKING:
    from httpx2 import AsyncClient

PREFLIGHT_S = 30.0


class OpenAiToolsExecutor:
    """Asks a model, does the calls it makes, and tells it the results; see `OpenAiToolsConfig`."""

    def __init__(self) -> None:
        self._client: AsyncClient | None = None
        self._parameters: OptionalParameters | None = None
        self._process_env: Mapping[str, str] = {}

    def configure(self, context: RunContext) -> None:
        """Remember where the credentials of endpoints are."""
        self._process_env = context.process_env

    def capabilities_for(self, config: OpenAiToolsConfig) -> Capabilities:
        """Skills need the tool for them, and only commands see environment variables."""
        return Capabilities(
            multi_turn=True,
            turn_completion=True,
            skills="skill" in config.tools,
            env="bash" in config.tools,
            reasoning_effort=True,
            isolation=True,
        )

    def tool_names(self, config: OpenAiToolsConfig) -> list[str]:
        """All tools the agent can have."""
        return list(config.tools)

    async def preflight(self, config: OpenAiToolsConfig) -> str:
        """Prove that something answers at the endpoint and does not refuse the credentials, and tell what."""
        import httpx2

        provider = _resolved(config, self._process_env)
        url = f"{provider.base_url}/models"
        try:
            with anyio.fail_after(PREFLIGHT_S):
                response = await self._shared_client().get(url, headers=provider_headers(provider))
        except TimeoutError:
            raise ExecutorError(f"{url}: no answer within {PREFLIGHT_S:g}s", code="executor-unavailable") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise ExecutorError(f"{url}: {reason}", code="executor-unavailable") from None
        status: int = response.status_code
        if status in (401, 403):
            raise ExecutorError(f"{url}: HTTP {status}, the credentials are refused", code="provider-auth")
        # Not every endpoint lists its models.
        return f"{url} answers with HTTP {status}"

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Run every turn of the stimulus."""
        from vally_executor_openai_tools.endpoint import Endpoint
        from vally_executor_openai_tools.session import Session

        config = options.executor_config
        if not isinstance(config, OpenAiToolsConfig):
            raise ExecutorError("executor 'openai-tools' needs a config with 'provider'", code="executor-config")
        model = config.provider.model or options.model
        if model is None:
            raise ExecutorError(
                "executor 'openai-tools' needs a model: set defaults.model, --model or provider.model",
                code="executor-config",
            )
        provider = _resolved(config, options.process_env)
        check_offered_skills(options.skills)
        endpoint = Endpoint(self._shared_client(), provider, model, config, self._optional(options))
        return await Session(config, stimulus, options, endpoint, model).run()

    async def shutdown(self) -> None:
        """Close all connections, also those of trials that still run."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _shared_client(self) -> Any:
        from vally_executor_openai_tools.endpoint import new_client

        if self._client is None:
            self._client = new_client()
        return self._client

    def _optional(self, options: ExecutorOptions) -> OptionalParameters:
        """What endpoints may refuse, remembered for all trials of the run."""
        if self._parameters is None:
            words = {"max_tokens": ("max_tokens",), "seed": ("seed",)}
            self._parameters = OptionalParameters(words, wanted_by_users=("seed",), log=options.log)
        return self._parameters


def _resolved(config: OpenAiToolsConfig, environ: Mapping[str, str]) -> ProviderConfig:
    try:
        return resolve_provider(config.provider.config(), environ)
    except VallyError as error:
        raise ExecutorError(f"provider.{error.where}: {error.message}", code="executor-config") from None
