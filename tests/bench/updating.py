#!/usr/bin/env python3
"""Fake agents that send updates as fast as a pipe takes them: ACP, or `codex app-server` where that is the first argument.

A prompt is answered with ROUNDS rounds of a message in pieces and a tool call that runs and ends. With `--print acp` or
`--print codex` the same lines are printed, and that is all: what parsing them alone costs is measured so.
"""

import json
import sys
from typing import Any

ROUNDS = 250
PIECES = {"acp": 36, "codex": 33}
"""Pieces of text in a round: with the tool call's own updates a round has 40 updates, so that there are 10,000 in all."""

THREAD = "01a00000-0000-7000-8000-000000000001"
TURN = "@@@@"
"""Stands for the turn's number in ids, so that no id comes twice in a session."""


def text_of(dialect: str) -> str:
    """All text that the agent says in one turn."""
    return "".join(piece(number, part) for number in range(ROUNDS) for part in range(PIECES[dialect]))


def piece(number: int, part: int) -> str:
    return f"round {number} piece {part} "


def acp() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def update(name: str, **fields: Any) -> None:
        params = {"sessionId": "s", "update": {"sessionUpdate": name, **fields}}
        found.append({"jsonrpc": "2.0", "method": "session/update", "params": params})

    for number in range(ROUNDS):
        for part in range(PIECES["acp"]):
            update("agent_message_chunk", content={"type": "text", "text": piece(number, part)})
        tool = {"toolCallId": f"tool-{TURN}-{number}"}
        update("tool_call", **tool, title="run", kind="execute", status="pending", rawInput={"command": "ls"})
        update("tool_call_update", **tool, status="in_progress")
        output = [{"type": "content", "content": {"type": "text", "text": f"output {number}"}}]
        update("tool_call_update", **tool, content=output)
        update("tool_call_update", **tool, status="completed", content=output)
    return found


def codex() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def note(method: str, **params: Any) -> None:
        found.append({"method": method, "params": {"threadId": THREAD, "turnId": TURN, **params}})

    for number in range(ROUNDS):
        message = {"type": "agentMessage", "id": f"message-{TURN}-{number}", "text": ""}
        note("item/started", item=message)
        said = [piece(number, part) for part in range(PIECES["codex"])]
        for words in said:
            note("item/agentMessage/delta", itemId=message["id"], delta=words)
        note("item/completed", item=message | {"text": "".join(said)})
        tool = {
            "type": "commandExecution",
            "id": f"tool-{TURN}-{number}",
            "command": "ls",
            "cwd": "/",
            "commandActions": [],
        }
        note("item/started", item=tool | {"status": "inProgress"})
        for part in range(3):
            note("item/commandExecution/outputDelta", itemId=tool["id"], delta=f"output {part}\n")
        output = "output 0\noutput 1\noutput 2\n"
        note("item/completed", item=tool | {"status": "completed", "exitCode": 0, "aggregatedOutput": output})
    return found


def encoded(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


FLOODS = {"acp": encoded(acp()), "codex": encoded(codex())}


def say(*messages: dict[str, Any]) -> None:
    sys.stdout.buffer.write(encoded(list(messages)))
    sys.stdout.buffer.flush()


def flood(dialect: str, turn: str = "0001") -> None:
    sys.stdout.buffer.write(FLOODS[dialect].replace(TURN.encode(), turn.encode()))
    sys.stdout.buffer.flush()


def serve_acp() -> None:
    turns = 0
    for line in sys.stdin.buffer:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": {}}
            case "session/new":
                result = {"sessionId": "s"}
            case "session/prompt":
                turns += 1
                flood("acp", f"{turns:04}")
                result = {"stopReason": "end_turn"}
            case _:
                result = {}
        if "id" in request:
            say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def serve_codex() -> None:
    turns = 0
    for line in sys.stdin.buffer:
        request = json.loads(line)
        number, params = request.get("id"), request.get("params") or {}
        match request.get("method"):
            case "initialize":
                say({"id": number, "result": {"userAgent": "trunkline/0.171.0 (fake)"}})
            case "account/read":
                say({"id": number, "result": {"account": None, "requiresOpenaiAuth": False}})
            case "thread/start":
                say({"id": number, "result": {"thread": {"id": THREAD}, "model": "m", "approvalPolicy": "on-request"}})
            case "turn/start":
                turns += 1
                codex_turn(f"{turns:04}", number, params)
            case _ if number is not None:
                say({"id": number, "result": {"data": []}})
            case _:
                pass


def codex_turn(name: str, number: Any, params: dict[str, Any]) -> None:
    place, turn = {"threadId": THREAD, "turnId": name}, {"id": name, "items": [], "status": "inProgress"}
    user = {"type": "userMessage", "id": f"user-{name}", "clientId": params.get("clientUserMessageId")}
    said = place | {"item": user | {"content": params["input"]}}
    say(
        {"id": number, "result": {"turn": turn}},
        {"method": "turn/started", "params": place | {"turn": turn}},
        {"method": "item/started", "params": said},
        {"method": "item/completed", "params": said},
    )
    flood("codex", name)
    say({"method": "turn/completed", "params": place | {"turn": turn | {"status": "completed"}}})


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--version"]:
            sys.stdout.write("codex-cli 0.171.0\n")
        case ["--print", dialect]:
            flood(dialect)
        case ["app-server", "--help"]:
            sys.stdout.write("generate-json-schema\n")
        case ["app-server", *_]:
            serve_codex()
        case _:
            serve_acp()


if __name__ == "__main__":
    main(sys.argv[1:])
