"""One trial: prompts, answers of the model, and the tools it calls."""

from __future__ import annotations

import anyio

from vally import (
    AgentLimit,
    EndpointError,
    ExecutorError,
    ExecutorOptions,
    Stimulus,
    Trajectory,
    TrajectoryBuilder,
    TurnComplete,
    __version__,
)
from vally_executor_openai_tools.config import OpenAiToolsConfig
from vally_executor_openai_tools.context_window import is_too_long
from vally_executor_openai_tools.conversation import Conversation
from vally_executor_openai_tools.endpoint import Endpoint
from vally_executor_openai_tools.outcome import Outcome
from vally_executor_openai_tools.reply import Reply, ToolRequest, Usage
from vally_executor_openai_tools.toolbox import NOT_JSON, Toolbox

EXECUTOR = "openai-tools"
MOST_UNREADABLE_CALLS = 3
CALLS_AT_ONCE = 8
TURN_DONE = "completed"


class Session:
    """The loop. Methods that return a text return an end reason; None means that the model goes on."""

    def __init__(
        self, config: OpenAiToolsConfig, stimulus: Stimulus, options: ExecutorOptions, endpoint: Endpoint, model: str
    ) -> None:
        self._config = config
        self._stimulus = stimulus
        self._options = options
        self._endpoint = endpoint
        self._model = model
        self._builder = TrajectoryBuilder(stimulus, options, executor=EXECUTOR, version=__version__)
        self._conversation = Conversation(config.system_prompt, options)
        self._toolbox = Toolbox(config, options)
        self._limit = AgentLimit(options)
        self._answers = 0
        self._tokens = 0
        self._prompt_tokens = 0
        self._unreadable_calls = 0

    async def run(self) -> Trajectory:
        """Run all turns; raises `ExecutorError` with the events so far when the model could not be asked."""
        try:
            return await self._run()
        except ExecutorError as error:
            error.trajectory = self._builder.finish("error")
            raise

    async def _run(self) -> Trajectory:
        turns = self._stimulus.turns
        for turn, prompt in enumerate(turns):
            if self._limit.reached:
                return self._builder.finish_stopped()
            end = await self._turn(prompt)
            if end is None:
                return self._builder.finish_stopped()
            if end != TURN_DONE:
                return self._builder.finish(end)
            await self._options.on_turn_complete(TurnComplete(turn, turn == len(turns) - 1))
        return self._builder.finish(TURN_DONE)

    async def _turn(self, prompt: str) -> str | None:
        """One prompt to its end; None when the agent's time is over."""
        self._builder.user_message(prompt)
        self._conversation.add_prompt(prompt)
        end: str | None = None

        async def work() -> None:
            nonlocal end
            end = await self._steps()

        return end if await self._limit.run(work) else None

    async def _steps(self) -> str:
        for _ in range(self._config.max_steps):
            end = await self._step()
            if end is not None:
                return end
        return "budget"

    async def _step(self) -> str | None:
        """One answer of the model and the calls in it."""
        if self._spent():
            return "budget"
        body = {"messages": self._conversation.messages, **self._parameters()}
        self._builder.turn_start()
        try:
            reply = await self._endpoint.complete(body, seed=self._options.seed)
        except EndpointError as error:
            if self._builder.acted and is_too_long(error):
                self._builder.custom("context-window-full", {"message": self._options.redact(error.message)})
                return "budget"
            raise self._provider_error(error) from error
        self._answers += 1
        end = await self._take(reply)
        self._builder.turn_end()
        return end

    async def _take(self, reply: Reply) -> str | None:
        self._count(reply.usage)
        if reply.reasoning is not None:
            self._builder.reasoning(reply.reasoning)
        if text := reply.text or reply.refusal or "":
            self._builder.assistant_message(text)
        if reply.refusal is not None or reply.finish_reason == "content_filter":
            return "refused"
        if reply.finish_reason == "length":
            # Calls may be cut in the middle, so none is made.
            return "budget"
        calls = self._conversation.add_reply(reply)
        return await self._call_all(calls) if calls else TURN_DONE

    async def _call_all(self, calls: tuple[ToolRequest, ...]) -> str | None:
        """Do the calls of one answer side by side; the model gets the results in the order of its calls."""
        for call in calls:
            self._builder.tool_call(call.name, call_id=call.call_id, arguments=call.arguments_value())
        outcomes: dict[str, Outcome] = {}
        limiter = anyio.CapacityLimiter(CALLS_AT_ONCE)
        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(self._call, call, outcomes, limiter)
        for call in calls:
            self._conversation.add_result(call.call_id, outcomes[call.call_id].text)
        return self._end_of_unreadable([outcomes[call.call_id] for call in calls])

    async def _call(self, call: ToolRequest, outcomes: dict[str, Outcome], limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            outcome = outcomes[call.call_id] = await self._toolbox.call(call.name, call.arguments)
        self._builder.tool_result(
            call.call_id,
            success=outcome.success,
            result=outcome.text,
            exit_code=outcome.exit_code,
            error_code=outcome.error_code,
        )

    def _end_of_unreadable(self, outcomes: list[Outcome]) -> str | None:
        for outcome in outcomes:
            self._unreadable_calls = self._unreadable_calls + 1 if outcome.error_code == NOT_JSON else 0
            if self._unreadable_calls == MOST_UNREADABLE_CALLS:
                self._builder.error(f"the arguments of {MOST_UNREADABLE_CALLS} calls in a row were not valid JSON")
                return "error"
        return None

    def _parameters(self) -> dict[str, object]:
        wanted = {
            "tools": self._toolbox.schemas() or None,
            "temperature": self._config.temperature,
            "reasoning_effort": self._options.reasoning_effort,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def _spent(self) -> bool:
        """Whether a limit is exceeded already, so that going on could change no verdict; or the window is full."""
        options, window = self._options, self._config.provider.max_prompt_tokens
        return (
            (options.max_turns is not None and self._answers > options.max_turns)
            or (options.max_tokens is not None and self._tokens > options.max_tokens)
            or (window is not None and self._prompt_tokens >= window)
        )

    def _count(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self._tokens += usage.input + usage.output
        self._prompt_tokens = usage.input + usage.output
        cost = None
        if usage.cost_usd is not None:
            cost = {"provider": self._config.provider.type, "unit": "usd", "amount": usage.cost_usd}
        self._builder.token_usage(
            usage.input,
            usage.output,
            model=self._model,
            cache_read_tokens=usage.cached,
            reasoning_tokens=usage.reasoning,
            cost=cost,
        )

    def _provider_error(self, error: EndpointError) -> ExecutorError:
        message = self._options.redact(f"the model's endpoint: {error.message}")
        self._builder.error(message, code=error.status)
        wait = error.retry_after_s
        return ExecutorError.of_provider(
            message, status=error.status, retry_after_ms=None if wait is None else round(wait * 1000)
        )
