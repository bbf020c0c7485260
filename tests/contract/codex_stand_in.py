#!/usr/bin/env python3
"""A fake of `codex app-server`: a program that speaks its protocol over stdio and does what the prompt says.

`STAND_IN` says how it behaves as a whole: `exit` (at once, with a reason), `signed_out` (wants a login), `hang` (answers
nothing), `mute` (answers nothing but what begins a session), `no_server` (a Codex without an app-server).
"""

import json
import os
import queue
import sys
import threading
import time
from typing import Any

BEHAVIOUR = os.environ.get("STAND_IN", "")
THREAD = "01a00000-0000-7000-8000-000000000001"
CHILD = "01a00000-0000-7000-8000-000000000002"
SETTINGS: dict[str, Any] = {
    "model": "m",
    "approvalPolicy": "on-request",
    "sandboxPolicy": {"type": "workspaceWrite"},
    "effort": None,
    "collaborationMode": {"mode": "default", "settings": {}},
}
TURNS: list[dict[str, Any]] = []
NOW = {"thread": THREAD}
"""The thread that this server was asked for last."""
COUNTS = {"turn": 0, "item": 0, "request": 0}
LINES: "queue.Queue[str]" = queue.Queue()
LATER: list[dict[str, Any]] = []
"""Messages that came while something else was waited for."""


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def note(method: str, **params: Any) -> None:
    say({"method": method, "params": params, "emittedAtMs": 1})


def listen() -> None:
    for line in sys.stdin:
        LINES.put(line)
    LINES.put("")


def hear(timeout: float | None = None) -> dict[str, Any] | None:
    """The next message; None at the end of input. Raises queue.Empty after `timeout` seconds."""
    line = LINES.get(timeout=timeout)
    return json.loads(line) if line else None


def next_id(kind: str) -> int:
    COUNTS[kind] += 1
    return COUNTS[kind]


class Turn:
    """One turn of the thread: its items, and what becomes of it."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.thread = NOW["thread"]
        self.id = f"turn-{next_id('turn')}"
        self.params = params
        self.items: list[dict[str, Any]] = []
        self.stopped = False
        self.error: dict[str, Any] | None = None

    @property
    def place(self) -> dict[str, Any]:
        return {"threadId": self.thread, "turnId": self.id}

    def describe(self, status: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "rootTurnId": self.id,
            "items": [],
            "status": status,
            "error": self.error,
            "durationMs": 1,
        }

    def start(self, kind: str, **fields: Any) -> dict[str, Any]:
        item = {"type": kind, "id": f"item-{next_id('item')}", **fields}
        note("item/started", item=item, **self.place)
        return item

    def finish(self, item: dict[str, Any], **fields: Any) -> None:
        self.items.append(item | fields)
        note("item/completed", item=item | fields, **self.place)

    def speak(self, words: list[str], pause: float = 0.0) -> None:
        """Streams a text; an interruption leaves it without an end, like the real one."""
        item = self.start("agentMessage", text="")
        for word in words:
            note("item/agentMessage/delta", delta=word, itemId=item["id"], **self.place)
            if pause and self.interrupted(pause):
                return
        self.finish(item, text="".join(words))

    def interrupted(self, pause: float) -> bool:
        try:
            message = hear(pause)
        except queue.Empty:
            return False
        if message is None:
            sys.exit(0)
        self.stopped = self.stopped or message.get("method") == "turn/interrupt"
        answer(message, self)
        return self.stopped

    def ask(self, method: str, **params: Any) -> Any:
        """A request of ours: the result of its answer."""
        number = next_id("request")
        say({"method": method, "id": number, "params": self.place | params})
        while (message := hear()) is not None:
            if "method" not in message:
                if message["id"] == number:
                    note("serverRequest/resolved", threadId=self.thread, requestId=number)
                    return message.get("result", {"error": message.get("error")})
            elif message["method"] == "turn/start":
                LATER.append(message)
            elif message["method"] == "turn/interrupt":
                self.stopped = True
                answer(message, self)
                return {}
            else:
                answer(message, self)
        sys.exit(0)


def run(message: dict[str, Any]) -> None:
    turn = Turn(message["params"])
    TURNS.append({"id": turn.id, "items": turn.items, "status": "inProgress"})
    say({"id": message["id"], "result": {"turn": turn.describe("inProgress")}})
    note("turn/started", threadId=NOW["thread"], turn=turn.describe("inProgress"))
    content = turn.params["input"]
    item = turn.start("userMessage", clientId=turn.params.get("clientUserMessageId"), content=content)
    turn.finish(item)
    text = "".join(part.get("text", "") for part in content)
    if text == "long":
        turn.speak([f"word{n} " for n in range(2000)], pause=0.02)
    elif text == "slow":
        turn.speak([f"word{n} " for n in range(4)], pause=0.5)
    elif text.startswith("err"):
        status = int(text[3:])
        retried = {"message": "Reconnecting... 1/1", "codexErrorInfo": {"responseStreamDisconnected": {}}}
        note("error", error=retried, willRetry=True, **turn.place)
        info = {"responseTooManyFailedAttempts": {"httpStatusCode": status}}
        turn.error = {"message": f"the model answers {status}", "codexErrorInfo": info}
        note("error", error=turn.error, willRetry=False, **turn.place)
    else:
        said = perform(turn, text)
        if not turn.stopped:
            turn.speak(said.split("\x00"))
    note(
        "thread/tokenUsage/updated",
        **turn.place,
        tokenUsage={"total": {"inputTokens": 10 * COUNTS["turn"], "outputTokens": COUNTS["turn"]}, "last": {}},
    )
    status = "interrupted" if turn.stopped else "failed" if turn.error else "completed"
    TURNS[-1]["status"] = status
    note("turn/completed", threadId=NOW["thread"], turn=turn.describe(status))


def perform(turn: Turn, text: str) -> str:
    word, _, rest = text.partition(" ")
    match word:
        case "ask":
            item = turn.start("commandExecution", command=rest, cwd="/", status="inProgress", commandActions=[])
            said = turn.ask("item/commandExecution/requestApproval", itemId=item["id"], command=rest)
            if turn.stopped:
                return ""
            accepted = said["decision"] not in ("decline", "cancel")
            turn.stopped = said["decision"] == "cancel"
            fields = {"status": "completed", "exitCode": 0, "aggregatedOutput": "done\n"}
            turn.finish(item, **(fields if accepted else {"status": "declined"}))
            return json.dumps(said)
        case "question":
            options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
            asked = {"id": "colour", "header": "Q", "question": "Which?", "isOther": False, "options": options}
            return json.dumps(turn.ask("item/tool/requestUserInput", itemId="call-q", questions=[asked]))
        case "call":
            item = turn.start("dynamicToolCall", tool="weather", arguments={"city": rest}, status="inProgress")
            result = turn.ask("item/tool/call", callId=item["id"], tool="weather", arguments={"city": rest})
            turn.finish(item, status="completed", **result)
            return json.dumps(result)
        case "request":
            return json.dumps(turn.ask(rest))
        case "plan":
            item = turn.start("plan", text="")
            note("item/plan/delta", delta="# Plan", itemId=item["id"], **turn.place)
            turn.finish(item, text="# Plan")
            return "planned"
        case "banner":
            sys.stdout.write("a new version is there!\n")
            sys.stdout.flush()
            return "printed"
        case "die":
            sys.stderr.write("the fake dies\n")
            sys.stderr.flush()
            os._exit(int(rest))
        case "huge":
            return "\x00".join(["x" * 50_000] * (int(rest) // 50_000))
        case "environment":
            return json.dumps(dict(os.environ))
        case "params":
            return json.dumps({name: value for name, value in turn.params.items() if name != "input"})
        case _:
            return text


def answer(message: dict[str, Any], turn: Turn | None = None) -> None:
    """A request of the client."""
    method, params = message.get("method", ""), message.get("params") or {}
    number = message.get("id")
    if number is None or "method" not in message:
        return
    result: dict[str, Any] | None = {}
    match method:
        case "initialize":
            result = {"userAgent": "trunkline/0.0.1 (fake)"}
        case "account/read":
            signed_out = BEHAVIOUR == "signed_out"
            result = {"account": None, "requiresOpenaiAuth": signed_out}
        case "model/list" if "cursor" not in params:
            result = {"data": [model("m", "low", "high")], "nextCursor": "1"}
        case "model/list":
            result = {"data": [model("m2", "low", "xhigh")], "nextCursor": None}
        case "skills/list":
            skill = {"name": "tidy", "description": "tidies", "path": "/skills/tidy", "enabled": True}
            result = {"data": [{"cwd": "/", "skills": [skill]}]}
        case "thread/start" | "thread/resume" | "thread/fork":
            if params.get("threadId") == "lost":
                refuse(number, "no rollout found for thread id lost")
                return
            SETTINGS.update({name: params[name] for name in ("model", "approvalPolicy") if params.get(name)})
            NOW["thread"] = CHILD if method == "thread/fork" else params.get("threadId") or THREAD
            thread = {"id": NOW["thread"], "name": None}
            result = {"thread": thread, "sandbox": SETTINGS["sandboxPolicy"], **SETTINGS}
        case _ if BEHAVIOUR == "mute":
            return
        case "thread/settings/update":
            SETTINGS.update({name: value for name, value in params.items() if name != "threadId"})
            note("thread/settings/updated", threadId=NOW["thread"], threadSettings=SETTINGS)
        case "thread/name/set":
            note("thread/name/updated", threadId=NOW["thread"], threadName=params["name"])
        case "thread/turns/list":
            result = {"data": TURNS[::-1], "nextCursor": None}
        case "turn/start" if turn is not None:
            result = {"turn": turn.describe("inProgress")}
        case "turn/start":
            run(message)
            return
        case "turn/steer" if turn is not None and params["expectedTurnId"] == turn.id:
            result = {"turnId": turn.id}
            item = turn.start("userMessage", clientId=params.get("clientUserMessageId"), content=params["input"])
            turn.finish(item)
        case "turn/steer":
            refuse(number, "no active turn to steer")
            return
        case "turn/interrupt" if turn is None:
            refuse(number, "no active turn to interrupt")
            return
        case "thread/compact/start":
            say({"id": number, "result": {}})
            compact()
            return
        case "review/start" | "turn/interrupt" | "thread/list":
            result = {"echo": params}
        case _:
            refuse(number, f"Invalid request: unknown variant `{method}`, expected one of `initialize`")
            return
    say({"id": number, "result": result})


def model(name: str, *efforts: str) -> dict[str, Any]:
    return {"model": name, "displayName": name, "supportedReasoningEfforts": [{"reasoningEffort": e} for e in efforts]}


def compact() -> None:
    turn = Turn({"input": []})
    note("turn/started", threadId=NOW["thread"], turn=turn.describe("inProgress"))
    turn.finish(turn.start("contextCompaction"))
    note("turn/completed", threadId=NOW["thread"], turn=turn.describe("completed"))


def refuse(number: Any, text: str) -> None:
    say({"error": {"code": -32600, "message": text}, "id": number})


def execute() -> None:
    """`codex exec --json`: one prompt on stdin, one turn."""
    prompt = sys.stdin.read().rstrip("\n")
    say({"type": "thread.started", "thread_id": THREAD})
    say({"type": "turn.started"})
    if prompt.startswith("die "):
        sys.stderr.write("the fake dies\n")
        sys.stderr.flush()
        os._exit(int(prompt.split()[1]))
    said = json.dumps(sys.argv[1:]) if prompt == "arguments" else prompt
    say({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": said}})
    say({"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}})


def main() -> None:
    if "--version" in sys.argv:
        print("codex-cli 0.0.1")  # noqa: T201  # it is a program
        return
    if "--help" in sys.argv:
        print("Usage: codex" if BEHAVIOUR == "no_server" else "generate-json-schema")  # noqa: T201  # likewise
        return
    if sys.argv[1:2] == ["exec"]:
        execute()
        return
    if BEHAVIOUR == "exit":
        sys.stderr.write("first line\nthis directory is cursed\n")
        sys.exit(3)
    if BEHAVIOUR == "hang":
        time.sleep(600)
    threading.Thread(target=listen, daemon=True).start()
    while (message := LATER.pop(0) if LATER else hear()) is not None:
        answer(message)


main()
