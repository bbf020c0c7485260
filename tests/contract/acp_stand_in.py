#!/usr/bin/env python3
"""A fake agent that speaks the Agent Client Protocol over stdio and does what the prompt says.

`STAND_IN` says how it behaves as a whole: `exit` (at once, with a reason), `signed_out`, `mute` (answers nothing but the first
requests), `future` (another version of the protocol), `load` (takes sessions up by telling them again), `plain` (no modes,
models, options or commands), `forgetful` (knows no session), `single` (takes none up), `loaded` (copies only
the session that it has loaded). `STAND_IN_STATE` is a directory where its sessions are kept.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Obj = dict[str, Any]

BEHAVIOUR = os.environ.get("STAND_IN", "")
STATE = Path(os.environ.get("STAND_IN_STATE", "."))
MODES = [{"id": "auto", "name": "Auto"}, {"id": "ask", "name": "Ask"}]
LEVELS = [{"value": "low", "name": "Low"}, {"value": "xhigh", "name": "Extra"}]
MODELS = [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]

values: dict[str, Any] = {"mode": "auto", "model": "small", "effort": "low"}
numbers = iter(range(10_000))
lines: "queue.Queue[bytes]" = queue.Queue()
now = SimpleNamespace(session="", cancelled=False, refused=False)


def say(message: Obj) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def update(name: str, **fields: Any) -> None:
    say({"method": "session/update", "params": {"sessionId": now.session, "update": {"sessionUpdate": name, **fields}}})


def speak(said: str, **fields: Any) -> None:
    update("agent_message_chunk", content={"type": "text", "text": said}, **fields)


def listen() -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    lines.put(b"")


def hear(timeout: float | None = None) -> Obj:
    """The next message. Raises queue.Empty after `timeout` seconds; ends the program at the end of input."""
    line = lines.get(timeout=timeout)
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method: str, **params: Any) -> Obj:
    """A request of ours and its answer; what comes meanwhile is served."""
    id = f"fake-{next(numbers)}"
    say({"id": id, "method": method, "params": {"sessionId": now.session, **params}})
    while True:
        message = hear()
        if "method" not in message and message["id"] == id:
            return message
        serve(message)


def answer(id: Any, result: Obj | None = None) -> None:
    say({"id": id, "result": result or {}})


def refuse(id: Any, code: int, message: str) -> None:
    say({"id": id, "error": {"code": code, "message": message}})


def options() -> list[Obj]:
    return [
        {"id": "mode", "category": "mode", "type": "select", "currentValue": values["mode"], "name": "Mode",
         "options": [{"value": one["id"], "name": one["name"]} for one in MODES]},
        {"id": "model", "category": "model", "type": "select", "currentValue": values["model"], "name": "Model",
         "options": MODELS},
        {"id": "effort", "category": "thought_level", "type": "select", "currentValue": values["effort"],
         "name": "Effort", "options": LEVELS},
    ]  # fmt: skip


def described() -> Obj:
    if BEHAVIOUR == "plain":
        return {"sessionId": now.session}
    modes = {"availableModes": MODES, "currentModeId": values["mode"]}
    return {"sessionId": now.session, "modes": modes, "configOptions": options()}


def initialized() -> Obj:
    able: Obj = {"list": {}, "close": {}, "fork": {}}
    if BEHAVIOUR not in ("load", "forgetful", "single", "loaded"):
        able["resume"] = {}
    return {
        "protocolVersion": 2 if BEHAVIOUR == "future" else 1,
        "agentInfo": {"name": "stand-in", "title": "Stand-in", "version": "1.2.3"},
        "agentCapabilities": {
            "loadSession": BEHAVIOUR in ("load", "forgetful", "loaded"),
            "promptCapabilities": {"image": True, "embeddedContext": True},
            "mcpCapabilities": {"http": True},
            "sessionCapabilities": able,
        },
        "authMethods": [{"id": "login", "name": "Log in", "description": "Run `stand-in login` in the terminal"}],
    }


def begin(id: Any, method: str, params: Obj) -> None:
    if BEHAVIOUR == "signed_out":
        refuse(id, -32000, "Authentication required")
        return
    if method != "session/new" and (BEHAVIOUR == "forgetful" or not (STATE / params["sessionId"]).exists()):
        refuse(id, -32002, "Resource not found")
        return
    if BEHAVIOUR == "loaded" and method == "session/fork" and now.session != params["sessionId"]:
        refuse(id, -32602, "Session not found")
        return
    told = Path() if method == "session/new" else STATE / params["sessionId"]
    if method in ("session/load", "session/resume"):
        now.session = params["sessionId"]
    else:
        now.session = f"native-{os.getpid()}-{next(numbers)}"
        (STATE / now.session).write_text(told.read_text() if told.is_file() else "")
    if method in ("session/load", "session/fork"):
        for line in told.read_text().splitlines():
            update("user_message_chunk", content={"type": "text", "text": line})
            update("tool_call", toolCallId=f"old-{line}", title="old", kind="read", status="completed")
            speak(f"You said {line}")
    answer(id, described())
    if method in ("session/load", "session/fork"):
        speak("told after the answer")
    if BEHAVIOUR != "plain":
        commands = [{"name": "compact", "description": "d"}, {"name": "help"}]
        update("available_commands_update", availableCommands=commands)


def serve(message: Obj) -> None:
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    match method:
        case "initialize":
            answer(id, initialized())
        case "authenticate":
            answer(id)
        case "session/new" | "session/load" | "session/resume" | "session/fork":
            begin(id, method, params)
        case "session/cancel":
            now.cancelled = True
        case "own/unanswered":
            pass
        case _ if BEHAVIOUR == "mute":
            pass
        case "session/prompt":
            prompt(id, params)
        case "session/set_config_option":
            values[params["configId"]] = params["value"]
            answer(id, {"configOptions": options()})
        case "session/close":
            answer(id)
        case "session/list":
            answer(id, {"sessions": [{"sessionId": now.session, "cwd": str(Path.cwd())}]})
        case _ if "id" in message and method is not None:
            refuse(id, -32601, "Method not found")
        case _:
            pass


def prompt(id: Any, params: Obj) -> None:
    now.cancelled = False
    said = "".join(block.get("text", "") for block in params["prompt"]) or json.dumps(params["prompt"])
    with (STATE / now.session).open("a") as kept:
        kept.write(said.splitlines()[0] + "\n")
    word, _, rest = said.partition(" ")
    for piece in perform(word, rest, said):
        speak(piece)
        if now.cancelled:
            break
    if word == "refused":
        now.refused = True
    if now.refused:
        refuse(id, -31002, "the key was refused")
        return
    if word == "fail":
        refuse(id, 400, json.dumps({"error": {"code": 400, "message": "the model is not there"}}))
        return
    answer(
        id, {"stopReason": "cancelled" if now.cancelled else "end_turn", "usage": {"inputTokens": 7, "outputTokens": 3}}
    )


def perform(word: str, rest: str, said: str) -> Iterator[str]:
    match word:
        case "long":
            for number in range(2000):
                yield f"word{number} "
                try:
                    serve(hear(0.02))
                except queue.Empty:
                    continue
        case "ask":
            update("tool_call", toolCallId="call-1", title="Terminal", kind="execute", status="pending", rawInput={})
            call = {"toolCallId": "call-1", "title": rest, "rawInput": {"command": rest}}
            kinds = [("yes", "allow_once"), ("always", "allow_always"), ("no", "reject_once")]
            offered = [{"optionId": name, "name": name, "kind": kind} for name, kind in kinds]
            outcome = ask("session/request_permission", toolCall=call, options=offered)["result"]["outcome"]
            refused = outcome.get("optionId") == "no" or outcome["outcome"] == "cancelled"
            update("tool_call_update", toolCallId="call-1", status="failed" if refused else "completed")
            yield json.dumps(outcome)
        case "question":
            properties = {"colour": {"type": "string", "title": "Which?", "enum": ["Red", "Blue"]}}
            form = {"type": "object", "properties": properties}
            yield json.dumps(ask("elicitation/create", mode="form", message="m", requestedSchema=form)["result"])
        case "request":
            yield json.dumps(ask(rest))
        case "call":
            method, _, params = rest.partition(" ")
            yield json.dumps(ask(method, **json.loads(params)))
        case "shell":
            made = ask("terminal/create", command="/bin/sh", args=["-c", rest])["result"]["terminalId"]
            shown = [{"type": "terminal", "terminalId": made}]
            update("tool_call", toolCallId="shell", title=rest, kind="execute", status="in_progress", content=shown)
            ended = ask("terminal/wait_for_exit", terminalId=made)["result"]
            printed = ask("terminal/output", terminalId=made)["result"]
            ask("terminal/release", terminalId=made)
            update("tool_call_update", toolCallId="shell", status="completed")
            yield json.dumps({"ended": ended, **printed})
        case "terminal":
            yield ask("terminal/create", command=rest)["result"]["terminalId"]
        case "take-back":
            say({"id": "back", "method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}})
            say({"method": "$/cancel_request", "params": {"requestId": "back"}})
            while (message := hear()).get("id") != "back":
                serve(message)
            yield json.dumps(message)
        case "options":
            yield json.dumps(values)
        case "banner":
            sys.stdout.buffer.write(b"a new version is there!\n")
            yield "printed"
        case "unheard":
            update("a_kind_of_next_year", value=1)
            say({"method": "own/notification", "params": {}})
            yield "said"
        case "die":
            speak("I am")
            sys.stderr.write("the stand-in dies\n")
            sys.stderr.flush()
            os._exit(int(rest))
        case "recall":
            yield (STATE / now.session).read_text()
        case "vanish":
            os._exit(int(rest))
        case "deaf":
            speak("I hear nothing")
            while True:
                hear()
        case "environment":
            yield json.dumps(dict(os.environ))
        case "fail" | "refused":
            pass
        case _:
            yield from (said[:3], said[3:])


def main() -> None:
    if BEHAVIOUR == "exit":
        sys.stderr.write("no licence\n")
        sys.exit(3)
    threading.Thread(target=listen, daemon=True).start()
    while True:
        serve(hear())


if __name__ == "__main__":
    main()
