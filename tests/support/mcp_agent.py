"""An executor that makes the tool calls of its prompt: `call SERVER TOOL JSON` on a line of its own, `say TEXT`."""

from __future__ import annotations

import json
from typing import Any

from vally import (
    Capabilities,
    ExecutorError,
    ExecutorOptions,
    ExecutorSpec,
    Stimulus,
    Trajectory,
    TrajectoryBuilder,
    TurnComplete,
)


class Client:
    """A client of one MCP server over standard streams."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._number = 0

    @classmethod
    async def start(cls, server: Any, options: ExecutorOptions) -> Client:
        argv = [server.command, *server.args]
        process = await options.runner.start(argv, cwd=server.cwd, env={**options.env, **server.env})
        client = cls(process)
        await client.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}})
        return client

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self._process.stdin.send(json.dumps(message).encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            try:
                line += await self._process.stdout.receive()
            except Exception as error:
                raise ExecutorError(f"the server left: {type(error).__name__}", code="mcp-server-failed") from error
        answer = json.loads(line)
        if "error" in answer:
            raise ExecutorError(answer["error"]["message"], code="mcp-server-failed")
        result: dict[str, Any] = answer["result"]
        return result

    async def close(self) -> None:
        await self._process.stdin.aclose()
        await self._process.wait()


class McpAgent:
    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        builder = TrajectoryBuilder(stimulus, options, executor="mcp-agent")
        try:
            await self._talk(stimulus, options, builder)
        except ExecutorError as error:
            error.trajectory = builder.finish("error")
            raise
        return builder.finish("completed")

    async def _talk(self, stimulus: Stimulus, options: ExecutorOptions, builder: TrajectoryBuilder) -> None:
        clients = {name: await Client.start(server, options) for name, server in options.mcp_servers.items()}
        prompt: str | None
        for turn, prompt in enumerate(stimulus.turns):
            await self._turn(prompt, clients, builder)
            await options.on_turn_complete(TurnComplete(turn, final=False))
        user = options.simulated_user
        while user is not None and (prompt := await user.next_message(builder.events)) is not None:
            await self._turn(prompt, clients, builder)
        for client in clients.values():
            await client.close()

    async def _turn(self, prompt: str, clients: dict[str, Client], builder: TrajectoryBuilder) -> None:
        builder.user_message(prompt)
        builder.turn_start()
        for number, line in enumerate(prompt.splitlines()):
            if line.startswith("call "):
                _, server, tool, *arguments = line.split(" ", 3)
                call_id = f"{builder.turn}-{number}"
                given = json.loads(arguments[0]) if arguments else None
                params = {"name": tool, **({} if given is None else {"arguments": given})}
                builder.tool_call(f"{server}-{tool}", call_id=call_id, arguments=given, mcp_server=server)
                result = await clients[server].ask("tools/call", params)
                text = "".join(part.get("text", "") for part in result["content"])
                builder.tool_result(call_id, success=result.get("isError") is not True, result=text)
        builder.assistant_message(f"done: {prompt.splitlines()[0]}")
        builder.turn_end()

    async def shutdown(self) -> None:
        return None


RECORD = ExecutorSpec(
    name="mcp-agent",
    summary="calls the tools that its prompt names",
    factory=McpAgent,
    capabilities=Capabilities(multi_turn=True, turn_completion=True, mcp=True, env=True, simulation=True),
    blocking=False,
)
