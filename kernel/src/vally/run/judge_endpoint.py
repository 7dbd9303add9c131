"""What judges behind an HTTP endpoint share, whatever the library that talks to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import anyio

from vally.errors import JudgeError
from vally.run.endpoint_error import EndpointError, endpoint_answer
from vally.run.judge_conversation import ask_judge
from vally.run.providers import outgoing_headers

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.run.judge_conversation import JudgeConversation
    from vally.run.judging import JudgeReply, JudgeRequest
    from vally.run.optional_parameters import OptionalParameters

PREFLIGHT_TIMEOUT_S = 30.0
PREFLIGHT_MESSAGE = "Reply with the word ok."
AS_JSON = "\n\nAnswer with one JSON object that fits the given schema. It counts as the call of {tool}."


class Closable(Protocol):
    """An endpoint, as far as its judge looks at it."""

    async def close(self) -> None: ...


E = TypeVar("E", bound=Closable)


class EndpointJudge(ABC, Generic[E]):
    """Base of judges that ask the models of one provider at an endpoint; see `Judge`."""

    def __init__(self) -> None:
        self._provider: ProviderConfig | None = None
        self._endpoint: E | None = None

    @abstractmethod
    def connect(self, provider: ProviderConfig) -> E:
        """The endpoint of a provider, not yet asked for anything."""

    @abstractmethod
    def conversation(self, request: JudgeRequest, provider: ProviderConfig, endpoint: E) -> JudgeConversation:
        """The conversation in which a question is asked."""

    @abstractmethod
    async def say(self, text: str, model: str, provider: ProviderConfig, endpoint: E) -> None:
        """Send a short message to a model and wait for any answer; raises `EndpointError`."""

    def configure(self, provider: ProviderConfig | None) -> None:
        """Make the client; raises `JudgeError` without a provider."""
        if provider is None:
            raise JudgeError("this judge needs defaults.judge_provider", kind="unavailable")
        self._provider = provider
        self._endpoint = self.connect(provider)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Ask one question; raises `JudgeError`."""
        return await ask_judge(request, self.conversation(request, *self._ready()))

    def _ready(self) -> tuple[ProviderConfig, E]:
        if self._provider is None or self._endpoint is None:
            raise JudgeError("the judge is not configured", kind="unavailable")
        return self._provider, self._endpoint

    async def preflight(self, model: str) -> None:
        """Ask the model for one word; raises `JudgeError` when it does not answer."""
        provider, endpoint = self._ready()
        try:
            with anyio.fail_after(PREFLIGHT_TIMEOUT_S):
                await self.say(PREFLIGHT_MESSAGE, provider.model or model, provider, endpoint)
        except EndpointError as error:
            raise JudgeError(error.message, kind="transport") from error
        except TimeoutError:
            raise JudgeError(f"no answer within {PREFLIGHT_TIMEOUT_S:g}s", kind="timeout") from None

    async def shutdown(self) -> None:
        """Close the client."""
        if self._endpoint is not None:
            await self._endpoint.close()
            self._endpoint = None


class EndpointConversation(Generic[E]):
    """Base of conversations by messages: what a question comes to for one provider.

    With `answer: schema` the arguments are asked for as a JSON object, and the system message says so.
    """

    def __init__(
        self, request: JudgeRequest, provider: ProviderConfig, endpoint: E, parameters: OptionalParameters
    ) -> None:
        self._request = request
        self._provider = provider
        self._endpoint = endpoint
        self._parameters = parameters
        self._as_json = provider.answer == "schema"
        self._model = provider.model or request.model
        self._system = request.system_message + (AS_JSON.format(tool=request.tool.name) if self._as_json else "")


async def posted_json(
    library: Any, client: Any, path: str, body: Mapping[str, Any], secrets: Iterable[str]
) -> Mapping[str, Any]:
    """Post a body with the client of a library and return the JSON object that comes back; raises `EndpointError`.

    The answer is taken as it came: servers that are merely compatible leave out much of what a library's types have.
    `library` is the module of the client, which defines `APIStatusError`, `APIConnectionError` and `APIError`.
    """
    known = tuple(secrets)
    try:
        answer = await client.post(path, body=body, cast_to=object)
    except library.APIStatusError as error:
        response = error.response
        raise EndpointError.of_status(error.status_code, response.text, response.headers, known) from error
    except library.APIConnectionError as error:
        raise EndpointError.of_connection(error, known) from error
    except (library.APIError, ValueError, RecursionError) as error:
        raise EndpointError("the endpoint's answer is not JSON", retryable=True) from error
    return endpoint_answer(answer, {}, known)


def own_headers_client(library: Any, own: Mapping[str, str]) -> Any:
    """The HTTP client of a library, which sends no header but technical ones and the `own`.

    Redirects are not followed, because the headers of an endpoint are meant for no other. There is no time limit: that
    is the one of the question.
    """

    async def send_own_headers_only(request: Any) -> None:
        headers = outgoing_headers(request.headers, own)
        for name in list(request.headers):
            if name not in headers:
                del request.headers[name]
        request.headers.update(headers)

    return library.DefaultAsyncHttpxClient(
        event_hooks={"request": [send_own_headers_only]}, follow_redirects=False, timeout=None
    )
