#!/usr/bin/env python3
"""A fake of agents that print JSON lines, one process a turn: it speaks the dialect that its arguments ask for.

What the prompt says it does. `STAND_IN_STATE` is a directory in which it keeps its sessions; `STAND_IN` says how it behaves as
a whole: `signed_out` (wants a login), `deaf` (misses its standard input the first time), `lingers` (does not leave when its
turn is over), `stubborn` (hears no SIGINT).
"""

import contextlib
import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Any

ARGUMENTS = sys.argv[1:]
BEHAVIOUR = os.environ.get("STAND_IN", "")
STATE = Path(os.environ.get("STAND_IN_STATE", "."))
HTTP = {"err400": "400", "err401": "401", "err429": "429", "err500": "500"}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def complain(text: str, code: int) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
    sys.exit(code)


def option(name: str) -> str | None:
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else None


class Gemini:
    """`gemini --output-format stream-json`."""

    login = (41, "Please set an Auth method in your settings.json")
    lost = (42, 'Error resuming session: Invalid session identifier "gone".')
    deaf = (
        42,
        "No input provided via stdin. Input can be provided by piping data into gemini or using the --prompt option.",
    )

    def __init__(self, session: str, prompt: str) -> None:
        self.session = session
        say({"type": "init", "session_id": session, "model": option("--model") or "auto"})
        say({"type": "message", "role": "user", "content": prompt})

    def piece(self, text: str) -> None:
        say({"type": "message", "role": "assistant", "content": text, "delta": True})

    def whole(self, text: str) -> None:
        """Nothing ends a text."""

    def call(self, name: str, given: dict[str, Any]) -> None:
        say({"type": "tool_use", "tool_name": name, "tool_id": "t1", "parameters": given})

    def returned(self, output: str) -> None:
        say({"type": "tool_result", "tool_id": "t1", "status": "success", "output": output})

    def end(self, text: str, error: str | None = None) -> None:
        del text
        stats = {
            "total_tokens": 30,
            "input_tokens": 20,
            "output_tokens": 10,
            "cached": 5,
            "input": 15,
            "duration_ms": 1,
        }
        failure = {"status": "error", "error": {"type": "unknown", "message": f"[API Error: {error}]"}}
        say({"type": "result", "stats": stats, **({"status": "success"} if error is None else failure)})


class StreamJson(Gemini):
    """The common form, in pieces where `--include-partial-messages` asks for them."""

    login = (1, "No auth type is selected. Not logged in")
    lost = (1, "No saved session found with ID gone.")

    def __init__(self, session: str, prompt: str) -> None:
        self.session = session
        self.partial = "--include-partial-messages" in ARGUMENTS
        self.message = 0
        said = {"role": "user", "content": [{"type": "text", "text": prompt}]}
        self.put({"type": "system", "subtype": "init", "model": "m", "tools": ["shell"], "permissionMode": "default"})
        self.put({"type": "user", "message": said})
        self.fresh = True

    def put(self, message: dict[str, Any]) -> None:
        say({**message, "session_id": self.session, "parent_tool_use_id": None})

    def stream(self, **event: Any) -> None:
        self.put({"type": "stream_event", "event": event})

    def piece(self, text: str) -> None:
        if self.fresh and self.partial:
            self.message += 1
            self.stream(type="message_start", message={"id": f"msg_{self.message}"})
        self.fresh = False
        if self.partial:
            self.stream(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def assistant(self, block: dict[str, Any]) -> None:
        self.put({"type": "assistant", "message": {"id": f"msg_{self.message}", "model": "m", "content": [block]}})

    def whole(self, text: str) -> None:
        self.assistant({"type": "text", "text": text})
        if self.partial:
            self.stream(type="message_stop")
        self.fresh = True

    def call(self, name: str, given: dict[str, Any]) -> None:
        self.assistant({"type": "tool_use", "id": "t1", "name": name, "input": given})

    def returned(self, output: str) -> None:
        block = {"type": "tool_result", "tool_use_id": "t1", "content": output}
        self.put({"type": "user", "message": {"role": "user", "content": [block]}})

    def end(self, text: str, error: str | None = None) -> None:
        usage = {"input_tokens": 15, "output_tokens": 10, "cache_read_input_tokens": 5}
        good = {"subtype": "success", "is_error": False, "result": text}
        bad = {"subtype": "error_during_execution", "is_error": True, "error": {"message": f"API Error: {error}"}}
        self.put({"type": "result", "usage": usage, "num_turns": 1, **(good if error is None else bad)})


class Cline(Gemini):
    """`cline --json`."""

    login = (1, '{"type":"error","message":"Unauthorized: not signed in"}')

    def __init__(self, session: str, prompt: str) -> None:
        del prompt
        self.session = session
        say({"type": "hook_event", "hookEventName": "agent_start", "taskId": f"conv_{session}", "parentAgentId": None})
        self.event(type="iteration_start", iteration=1)

    def event(self, **event: Any) -> None:
        say({"type": "agent_event", "event": event})

    def piece(self, text: str) -> None:
        self.event(type="content_start", contentType="text", text=text)

    def whole(self, text: str) -> None:
        self.event(type="content_end", contentType="text", text=text)

    def call(self, name: str, given: dict[str, Any]) -> None:
        self.event(type="content_start", contentType="tool", toolCallId="t1", toolName=name, input=given)

    def returned(self, output: str) -> None:
        self.event(type="content_end", contentType="tool", toolCallId="t1", toolName="shell", output=output)

    def end(self, text: str, error: str | None = None) -> None:
        reason, said = ("completed", text) if error is None else ("error", f"API Error: {error}")
        usage = {"inputTokens": 20, "outputTokens": 10, "cacheReadTokens": 5, "totalCost": 0.5}
        self.event(type="done", reason=reason, text=said)
        say(
            {
                "type": "run_result",
                "finishReason": reason,
                "usage": usage,
                "durationMs": 1,
                "text": said,
                "iterations": 1,
            }
        )


class Reply(Gemini):
    """`cn --print --format json`: nothing but the answer, and the end."""

    login = (1, "Error: run `cn login` first")

    def __init__(self, session: str, prompt: str) -> None:
        del prompt
        self.session = session

    def piece(self, text: str) -> None:
        """It says nothing before the end."""

    def call(self, name: str, given: dict[str, Any]) -> None:
        """It tells of no tools."""

    def returned(self, output: str) -> None:
        """Likewise."""

    def end(self, text: str, error: str | None = None) -> None:
        if error is not None:
            complain(json.dumps({"status": "error", "message": error}), 1)
        with contextlib.suppress(ValueError):
            json.loads(text)
            sys.stdout.write(text + "\n")  # an answer that is JSON stands as it is
            return
        say({"response": text, "status": "success", "note": "it was no JSON"})


def dialect() -> type[Gemini]:
    if "--json" in ARGUMENTS:
        return Cline
    if "--format" in ARGUMENTS:
        return Reply
    whole = {"--include-partial-messages", "--execute", "--print"}
    return StreamJson if whole & set(ARGUMENTS) else Gemini


def heard(kind: type[Gemini]) -> str:
    """The prompt, from where this agent takes it."""
    if kind is Reply or "--print" in ARGUMENTS:
        return ARGUMENTS[-1]
    marker = STATE / "deaf"
    if BEHAVIOUR == "deaf" and not marker.exists():
        marker.touch()
        complain(kind.deaf[1], kind.deaf[0])
    return sys.stdin.read().removesuffix("\n")


def taken_up(kind: type[Gemini]) -> str:
    """The id of the session: a new one, or the one to go on with."""
    wanted = option("--resume") or option("continue")
    kept = STATE / "sessions"
    if wanted is None:
        session = str(uuid.uuid4())
        with contextlib.suppress(OSError):
            kept.open("a").write(f"{session}\n")
        return session
    if not kept.exists() or wanted not in kept.read_text().split():
        complain(kind.lost[1], kind.lost[0])
    return wanted


def leave(number: int, frame: object) -> None:
    del number, frame
    os._exit(0)


def main() -> None:
    if BEHAVIOUR == "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        # As the real ones do: gone at once, with nothing said and exit code 0.
        signal.signal(signal.SIGINT, leave)
    kind = dialect()
    if BEHAVIOUR == "signed_out":
        complain(kind.login[1], kind.login[0])
    prompt = heard(kind)
    agent = kind(taken_up(kind), prompt)
    word, _, rest = prompt.partition(" ")
    if word in HTTP:
        agent.end("", f"{HTTP[word]} the model answers so")
    elif word == "vanish":
        agent.piece("I am ")
        os._exit(0)
    elif word == "fail":
        agent.piece("I am ")
        complain("it is all over", 3)
    elif word == "die":
        agent.piece("I am ")
        sys.stderr.write("the fake dies\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        said = perform(agent, word, rest, prompt)
        agent.end(said)
    if BEHAVIOUR == "lingers":
        time.sleep(600)


def perform(agent: Gemini, word: str, rest: str, prompt: str) -> str:
    words, pause = [prompt], 0.0
    match word:
        case "long":
            words, pause = [f"word{n} " for n in range(2000)], 0.02
        case "slow":
            words, pause = [f"word{n} " for n in range(4)], 0.5
        case "silent":
            time.sleep(600)
        case "huge":
            words = ["x" * 50_000] * (int(rest) // 50_000)
        case "arguments":
            words = [json.dumps(ARGUMENTS)]
        case "environment":
            words = [json.dumps(dict(os.environ))]
        case "banner":
            sys.stdout.write("a new version is there!\n")
            sys.stdout.flush()
        case "tool":
            agent.piece("I use a tool. ")
            agent.whole("I use a tool. ")
            agent.call("shell", {"command": rest})
            agent.returned("it-ran")
            words = ["done"]
        case "work":
            agent.call("shell", {"command": rest})
            time.sleep(float(rest))
            agent.returned("it-ran")
        case _:
            pass
    for one in words:
        agent.piece(one)
        time.sleep(pause)
    said = "".join(words)
    agent.whole(said)
    return said


if __name__ == "__main__":
    main()
