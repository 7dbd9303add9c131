"""The judge: a very small model on this machine."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio

from vally import EndpointError, JudgeError, JudgeReply, JudgeRequest, ProviderConfig, ask_judge
from vally_judge_tiny.config import TinyConfig, model_file
from vally_judge_tiny.conversation import TinyConversation
from vally_judge_tiny.process import ModelProcess

PREFLIGHT_TIMEOUT_S = 60.0


class TinyJudge:
    """Asks the model, whatever the name of the model in the request is."""

    def __init__(self) -> None:
        self._config = TinyConfig()
        self._model: ModelProcess | None = None
        self._name = ""

    def configure(self, provider: ProviderConfig | None) -> None:
        """Take the settings; raises `JudgeError` for an endpoint, because there is none."""
        if provider is None:
            return
        if provider.base_url is not None:
            raise JudgeError("judge 'tiny' runs on this machine and has no baseUrl", kind="unavailable")
        self._config = TinyConfig.model_validate_json(json.dumps(dict(provider.options)), by_alias=True, by_name=False)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Ask one question; raises `JudgeError`."""
        model = self._ready()
        reply = await ask_judge(request, TinyConversation(request, model))
        return replace(reply, model=self._name)

    async def preflight(self, model: str) -> None:
        """Load the model and ask it for one word; raises `JudgeError`."""
        question = {"messages": [{"role": "user", "content": "Say ok."}], "max_tokens": 1}
        try:
            with anyio.fail_after(PREFLIGHT_TIMEOUT_S):
                await self._ready().complete(question)
        except EndpointError as error:
            raise JudgeError(error.message, kind="transport") from error
        except TimeoutError:
            raise JudgeError(f"no answer within {PREFLIGHT_TIMEOUT_S:g}s", kind="timeout") from None

    async def shutdown(self) -> None:
        """End the process of the model."""
        if self._model is not None:
            await self._model.stop()
            self._model = None

    def _ready(self) -> ModelProcess:
        if self._model is None:
            path = model_file(self._config.path)
            self._model = ModelProcess(path, self._config.threads)
            self._name = path.stem
        return self._model
