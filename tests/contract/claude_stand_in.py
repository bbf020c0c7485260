#!/usr/bin/env python3
"""A stand-in for the CLI: a program that speaks its protocol and does what the prompt says: over stdio, or as a client of
`--sdk-url`, by the version that its file's name ends with.

`STAND_IN` says how it behaves as a whole: `exit` (at once, with a reason), `signed_out`, `mute` (answers no control request but
the first), `old` (a second initialize is an error).
"""

import json
import os
import queue
import sys
import threading
import time
from typing import Any

# What only `--sdk-url` needs is imported there: most of the time of a stand-in's life is its start.

VERSION = sys.argv[0].rpartition("-")[2] if "-" in os.path.basename(sys.argv[0]) else "2.1.332"  # noqa: PTH119
SDK_URL = sys.argv[sys.argv.index("--sdk-url") + 1] if "--sdk-url" in sys.argv else None
HEADERS = {"Authorization": f"Bearer {os.environ.get('CLAUDE_CODE_SESSION_ACCESS_TOKEN')}"}
BEHAVIOUR = os.environ.get("STAND_IN", "")
STATE: set[str] = set()
WAITING: list[dict[str, Any]] = []
"""Prompts that came during a turn."""
SESSION = f"0a0a0a0a-0000-4000-8000-00000000000{int('--fork-session' in sys.argv)}"
"""A copy has an id of its own."""


def say(message: dict[str, Any]) -> None:
    if SDK_URL is not None:
        post(SDK_URL, message)
        return
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def post(url: str, message: dict[str, Any]) -> None:
    """As 2.1.101: the same again until it is answered."""
    import http.client
    import urllib.error
    import urllib.request

    address = url.replace("ws:", "http:").replace("/ws/", "/session/") + "/events"
    body = json.dumps({"events": [message]}).encode()
    while True:
        request = urllib.request.Request(address, body, HEADERS | {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=1) as answer:
                answer.read()
            return
        except urllib.error.HTTPError as error:
            if error.code < 500:  # given up, as the real one does
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)


async def listen_to(url: str) -> None:
    """As 2.1.101, but for its pauses: connects again unless the close code says that it is over."""
    import asyncio

    import aiohttp

    async with aiohttp.ClientSession() as client:
        while True:
            try:
                async with client.ws_connect(url, headers=HEADERS) as socket:
                    async for frame in socket:
                        LINES.put(frame.data)
                    if socket.close_code in {1002, 4001, 4003}:
                        LINES.put("")
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


def succeed(request: str, **payload: Any) -> None:
    say({"type": "control_response", "response": {"subtype": "success", "request_id": request, "response": payload}})


def fail(request: str, error: str, code: str | None = None) -> None:
    response = {"subtype": "error", "request_id": request, "error": error, "error_code": code}
    say({"type": "control_response", "response": response})


LINES: "queue.Queue[str]" = queue.Queue()


def listen() -> None:
    if SDK_URL is not None:
        import asyncio

        asyncio.run(listen_to(SDK_URL))
        return
    for line in sys.stdin:
        LINES.put(line)
    LINES.put("")


def hear(timeout: float | None = None) -> dict[str, Any] | None:
    """The next line; None at the end of input. Raises queue.Empty after `timeout` seconds."""
    line = LINES.get(timeout=timeout)
    # Like the real one: a line that is no JSON is the end.
    return json.loads(line) if line else None


def stream(event: dict[str, Any]) -> None:
    say({"type": "stream_event", "event": event, "parent_tool_use_id": None})


def speak(message: str, words: list[str], *, pause: float = 0.0) -> bool:
    """Streams a text and finishes it; False if it was interrupted meanwhile."""
    stream({"type": "message_start", "message": {"id": message, "model": "m", "usage": {"input_tokens": 1}}})
    stream({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    said, whole = "", True
    for word in words:
        said += word
        stream({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
        if pause and interrupted(pause):
            whole = False
            break
    body = {"id": message, "content": [{"type": "text", "text": said}]}
    say({"type": "assistant", "message": body, "parent_tool_use_id": None, "aborted": not whole})
    stream({"type": "content_block_stop", "index": 0})
    stream({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}})
    stream({"type": "message_stop"})
    return whole


def interrupted(pause: float) -> bool:
    try:
        message = hear(pause)
    except queue.Empty:
        return False
    if message is None:
        sys.exit(0)
    if message.get("type") == "control_request":
        control(message)
        return message["request"]["subtype"] == "interrupt"
    if message.get("type") == "user":
        say({"type": "command_lifecycle", "command_uuid": message.get("uuid"), "state": "queued"})
        WAITING.append(message)
    return False


def turn(line: dict[str, Any]) -> None:
    uuid, content = line.get("uuid"), line["message"]["content"]
    if line in WAITING:
        WAITING.remove(line)
    else:
        say({"type": "command_lifecycle", "command_uuid": uuid, "state": "queued"})
    say({"type": "command_lifecycle", "command_uuid": uuid, "state": "started"})
    say({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m", "permissionMode": "default"})
    if content in {"long", "slow"}:
        count, pause = (2000, 0.02) if content == "long" else (5, 0.2)
        whole = speak(f"msg-{uuid}", [f"word{n} " for n in range(count)], pause=pause)
        said = content
    elif isinstance(content, str) and content.startswith("err"):
        fail_turn(uuid, int(content[3:]))
        return
    else:
        try:
            said = perform(content) if isinstance(content, str) else json.dumps(content)
        except Interrupted:
            interrupted_turn(uuid)
            return
        whole = speak(f"msg-{uuid}", said.split("\x00"))
    ended: dict[str, Any] = {"subtype": "success", "is_error": False, "result": said}
    if not whole:
        ended = {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_streaming"}
    say({"type": "result", "user_message_uuids": [uuid], **ended})
    say({"type": "command_lifecycle", "command_uuid": uuid, "state": "completed"})


def interrupted_turn(uuid: str | None) -> None:
    """The end of a turn that was interrupted while it asked."""
    ended = {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"}
    say({"type": "result", "user_message_uuids": [uuid], **ended})
    say({"type": "command_lifecycle", "command_uuid": uuid, "state": "completed"})


def fail_turn(uuid: str | None, status: int) -> None:
    """The end of a turn whose model API answered with an error, as recorded in tests/recordings/claude/10-error-err401."""
    said = f"API Error: {status} Scripted error {status}."
    body = {"id": f"msg-{uuid}", "model": "<synthetic>", "content": [{"type": "text", "text": said}]}
    say({"type": "assistant", "message": body, "parent_tool_use_id": None, "isApiErrorMessage": True})
    result = {"subtype": "success", "is_error": True, "api_error_status": status, "result": said}
    say({"type": "result", "user_message_uuids": [uuid], **result})
    say({"type": "command_lifecycle", "command_uuid": uuid, "state": "completed"})


def perform(content: str) -> str:
    word, _, rest = content.partition(" ")
    match word:
        case "huge":
            return "x" * int(rest)
        case "ask":
            tool = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": rest}}
            say({"type": "assistant", "message": {"id": "msg-tool", "content": [tool]}, "parent_tool_use_id": None})
            request = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "toolu_1"}
            say({"type": "control_request", "request_id": "ask-1", "request": request | {"input": {"command": rest}}})
            answer = answer_to("ask-1")
            refused = answer["response"]["behavior"] == "deny"
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done", "is_error": refused}
            say({"type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": None})
            return json.dumps(answer)
        case "question":
            options = [{"label": "Red"}, {"label": "Blue"}]
            asked = {"questions": [{"question": "Which?", "header": "Q", "options": options}]}
            request = {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": asked}
            say({"type": "control_request", "request_id": "ask-2", "request": request | {"tool_use_id": "toolu_2"}})
            return json.dumps(answer_to("ask-2"))
        case "request":
            say({"type": "control_request", "request_id": "x-1", "request": {"subtype": rest}})
            return json.dumps(answer_to("x-1"))
        case "banner":
            sys.stdout.write("a new version is there!\n")
            sys.stdout.buffer.flush()
            return "printed"
        case "flood":
            for number in range(int(rest)):
                say({"type": "tool_use_summary", "summary": f"{number} " + "x" * 100_000, "preceding_tool_use_ids": []})
            return "flooded"
        case "die":
            sys.stderr.write("the stand-in dies\n")
            sys.stderr.flush()
            os._exit(int(rest))
        case "environment":
            return json.dumps(dict(os.environ))
        case _:
            return content


class Interrupted(Exception):  # noqa: N818  # it is no error
    """The host interrupts the turn while it is asked something."""


def answer_to(request: str) -> dict[str, Any]:
    while (message := hear()) is not None:
        if message.get("type") == "control_response" and message["response"]["request_id"] == request:
            return message["response"]
        if message.get("type") == "control_request":
            control(message)
            if message["request"]["subtype"] == "interrupt":
                say({"type": "control_cancel_request", "request_id": request})
                raise Interrupted
    sys.exit(0)


def control(message: dict[str, Any]) -> None:
    request_id, request = message["request_id"], message["request"]
    match request["subtype"]:
        case "initialize" if STATE and BEHAVIOUR == "old":
            fail(request_id, "Already initialized")
        case "initialize":
            STATE.add("initialized")
            succeed(request_id, commands=[{"name": "compact", "description": "d"}], models=[{"value": "m"}])
        case _ if BEHAVIOUR == "mute":
            pass
        case "set_model" | "set_max_thinking_tokens" | "interrupt" | "rename_session":
            succeed(request_id, **{key: value for key, value in request.items() if key != "subtype"})
        case "set_permission_mode" if request["mode"] == "sideways":
            fail(request_id, "must be one of", "invalid_mode")
        case "set_permission_mode":
            succeed(request_id, mode=request["mode"])
        case subtype:
            fail(request_id, f"Unsupported control request subtype: {subtype}", "unsupported_request")


def main() -> None:
    if "--version" in sys.argv:
        print(f"{VERSION} (stand-in)")  # noqa: T201  # it is a program
        return
    if BEHAVIOUR == "exit":
        sys.stderr.write("first line\nthis directory is cursed\n")
        sys.exit(3)
    if BEHAVIOUR == "signed_out":
        sys.stderr.write("Invalid API key. Please run /login\n")
        sys.exit(1)
    if BEHAVIOUR == "hang":
        time.sleep(600)
    threading.Thread(target=listen, daemon=True).start()
    while (message := WAITING[0] if WAITING else hear()) is not None:
        match message.get("type"):
            case "user":
                turn(message)
            case "control_request":
                control(message)
            case _:
                pass


main()
