"""An agent that does what a file says, for tests: `fake_agent.py SCRIPT`.

The script is a JSON object: `initialize`, `session` and `mode` are the results of these requests (null: no answer,
`{"error": ...}`: refused), `prompts` a list of lists of steps, the last of which repeats. A step is an object with one
key: `update` and `ask` are sent (`ask` as a request for permission, its answer goes to the file of `answers`), `text`
is said, `shell` is run, `sleep` waits unless the prompt is cancelled, `deaf` waits in any case, `kill` sends itself a
signal, `raw` and `stderr` are written as they are, `result` and `error` answer the prompt, `exit` ends the process.
`servers` starts the MCP servers. `${PROMPT}` in a text is the prompt.
"""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time

SCRIPT = json.load(open(sys.argv[1]))  # noqa: SIM115, PTH123  # a short-lived program
INCOMING = queue.Queue()
CANCELLED = threading.Event()
ANSWERS = {}
SERVERS = []
NUMBERS = itertools.count(100)


def read():
    for line in sys.stdin:
        message = json.loads(line)
        if "log" in SCRIPT:
            with open(SCRIPT["log"], "a") as file:  # noqa: PTH123  # a short-lived program
                file.write(json.dumps(message) + "\n")
        if message.get("method") == "session/cancel":
            CANCELLED.set()
        elif "method" not in message:
            ANSWERS[message["id"]].put(message)
        INCOMING.put(message)
    CANCELLED.set()
    INCOMING.put(None)


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session, body):
    send({"method": "session/update", "params": {"sessionId": session, "update": body}})


def answer(number, told):
    if told is None:
        return
    send({"id": number, "error": told["error"]} if "error" in told else {"id": number, "result": told})


def ask(session, body):
    number = next(NUMBERS)
    ANSWERS[number] = queue.Queue()
    send(
        {
            "id": number,
            "method": body.pop("method", "session/request_permission"),
            "params": {"sessionId": session, **body},
        }
    )
    told = ANSWERS[number].get()
    if "answers" in SCRIPT:
        with open(SCRIPT["answers"], "a") as file:  # noqa: PTH123  # a short-lived program
            file.write(json.dumps(told) + "\n")


def start_servers():
    for server in SERVERS:
        if server.get("type", "stdio") == "stdio":
            env = {**os.environ, **{item["name"]: item["value"] for item in server["env"]}}
            subprocess.Popen([server["command"], *server["args"]], env=env, stdin=subprocess.PIPE)


def prompt(number, params, steps):
    session = params["sessionId"]
    CANCELLED.clear()
    for step in steps:
        ((kind, value),) = step.items()
        if kind == "update":
            update(session, value)
        elif kind == "text":
            text = value.replace("${PROMPT}", params["prompt"][0]["text"])
            update(session, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
        elif kind == "ask":
            ask(session, dict(value))
        elif kind == "servers":
            start_servers()
        elif kind == "shell":
            subprocess.run(value, shell=True, check=False, stdin=subprocess.DEVNULL)  # that is its work
        elif kind == "sleep":
            if CANCELLED.wait(value):
                return answer(number, SCRIPT.get("cancelled", {"stopReason": "cancelled"}))
        elif kind == "deaf":
            time.sleep(value)
        elif kind == "raw":
            sys.stdout.buffer.write(value.encode("utf-8", "surrogateescape"))
            sys.stdout.flush()
        elif kind == "stderr":
            sys.stderr.write(value)
            sys.stderr.flush()
        elif kind == "error":
            return answer(number, {"error": value})
        elif kind == "exit":
            os._exit(value)
        elif kind == "kill":
            os.kill(os.getpid(), value)
        elif kind == "result":
            return answer(number, value)
    return answer(number, {"stopReason": "end_turn"})


def main():
    threading.Thread(target=read, daemon=True).start()
    if "exit" in SCRIPT:
        sys.exit(SCRIPT["exit"])
    prompts, sessions = 0, 0
    while (message := INCOMING.get()) is not None:
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            default = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "fake", "version": "7"}}
            answer(number, SCRIPT.get("initialize", default))
        elif method == "session/new":
            sessions += 1
            SERVERS.extend(message["params"]["mcpServers"])
            for body in SCRIPT.get("early", ()):
                update(f"s{sessions}", body)
            told = SCRIPT.get("session", {})
            answer(number, {"sessionId": f"s{sessions}", **told} if told is not None and "error" not in told else told)
        elif method in ("session/set_mode", "authenticate"):
            answer(number, SCRIPT.get("mode", {}))
        elif method == "session/prompt":
            steps = SCRIPT.get("prompts", [[{"text": "Hello."}]])
            chosen = steps[min(prompts, len(steps) - 1)]
            prompts += 1
            threading.Thread(target=prompt, args=(number, message["params"], chosen), daemon=True).start()


main()
