#!/usr/bin/env python3
"""A fake of `opencode serve`: a program that speaks its protocol over HTTP on loopback and does what the prompt says.

`STAND_IN` says how it behaves as a whole: `exit` (at once, with a reason), `taken` (its port is taken, the first time), `deaf`
(prints nothing), `mute` (answers no prompt), `loses` (keeps a prompt that comes in mid-turn, and does not answer it, the first
time), `forgetful` (never answers such a prompt). Its sessions survive it, in a
file of its home.
"""

import base64
import itertools
import json
import os
import pickle
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

BEHAVIOUR = os.environ.get("STAND_IN", "")
PASSWORD = os.environ.get("OPENCODE_SERVER_PASSWORD", "")
DATA = Path(os.environ["HOME"]) / "stand-in-data"
LOCK = threading.RLock()
COUNT = itertools.count(int(time.time() * 1000) % 10**9 * 1000)
TOKENS = {"input": 10, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
NONE = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
MODEL = {"id": "m", "name": "M", "variants": {"low": {}, "high": {}}, "limit": {"context": 1000}}
AGENTS = [
    {"name": "build", "mode": "primary", "description": "builds"},
    {"name": "plan", "mode": "primary"},
    {"name": "general", "mode": "subagent"},
    {"name": "title", "mode": "primary", "hidden": True},
]

Obj = dict[str, Any]


def new_id(kind: str) -> str:
    return f"{kind}_{next(COUNT):015d}"


class Store:
    """What the server keeps: sessions, messages, and what it waits for."""

    def __init__(self) -> None:
        self.sessions: dict[str, Obj] = {}
        self.messages: dict[str, list[Obj]] = {}
        self.permissions: dict[str, Obj] = {}
        self.questions: dict[str, Obj] = {}

    def save(self) -> None:
        fresh = DATA.with_suffix(".new")
        fresh.write_bytes(pickle.dumps((self.sessions, self.messages)))
        fresh.replace(DATA)

    def load(self) -> None:
        if DATA.exists():
            self.sessions, self.messages = pickle.loads(DATA.read_bytes())


STORE = Store()
STREAMS: "list[queue.Queue[bytes | None]]" = []
RUNS: dict[str, "Run"] = {}
ANSWERS: "dict[str, queue.Queue[Obj]]" = {}
LOSSES = [0]
AWAY = threading.Event()
"""No events are served."""


def emit(kind: str, **properties: Any) -> None:
    data = json.dumps({"id": new_id("evt"), "type": kind, "properties": properties})
    with LOCK:
        for stream in STREAMS:
            stream.put(f"data: {data}\n\n".encode())


def status(session: str, kind: str, **more: Any) -> None:
    emit("session.status", sessionID=session, status={"type": kind, **more})
    if kind == "idle":
        emit("session.idle", sessionID=session)


def keep(session: str, info: Obj) -> Obj:
    """Stores a message, or what has changed of it, and tells it."""
    with LOCK:
        known = next((one for one in STORE.messages[session] if one["info"]["id"] == info["id"]), None)
        if known is None:
            STORE.messages[session].append({"info": info, "parts": []})
        else:
            known["info"] = info
        STORE.save()
    emit("message.updated", sessionID=session, info=info)
    return info


def keep_part(session: str, message: str, part: Obj) -> Obj:
    part = {"id": new_id("prt"), "messageID": message, "sessionID": session} | part
    with LOCK:
        parts = next(one["parts"] for one in STORE.messages[session] if one["info"]["id"] == message)
        known = next((n for n, one in enumerate(parts) if one["id"] == part["id"]), None)
        if known is None:
            parts.append(part)
        else:
            parts[known] = part
        STORE.save()
    emit("message.part.updated", sessionID=session, part=part)
    return part


class Run:
    """The loop of a session: answers user messages until none is left, or it is aborted."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.aborted = threading.Event()
        self.stopped = False
        self.todo: list[Obj] = []

    def loop(self) -> None:
        while True:
            with LOCK:
                if not self.todo or self.aborted.is_set() or self.stopped:
                    RUNS.pop(self.session, None)
                    break
                body = self.todo.pop(0)
            status(self.session, "busy")
            self.answer(body)
        status(self.session, "idle")

    def answer(self, body: Obj) -> None:
        text = "".join(part.get("text", "") for part in body["parts"])
        if body.get("model", {}).get("modelID") == "none":
            error = {"name": "UnknownError", "data": {"message": "Model not found: p/none."}}
            emit("session.error", sessionID=self.session, error=error)
            return
        info: Obj = {
            "id": new_id("msg"),
            "role": "assistant",
            "sessionID": self.session,
            "parentID": body["message"],
            "agent": body.get("agent", "build"),
            "cost": 0,
            "tokens": NONE,
            "modelID": "m",
            "providerID": "p",
            "time": {"created": 1},
        }
        self.info = keep(self.session, info)
        keep_part(self.session, info["id"], {"type": "step-start"})
        finish = "stop"
        if text.startswith("err"):
            self.retry(int(text[3:]))
        elif text == "drop":
            self.speak(["half a sen"])
            finish = "unknown"
            self.todo.insert(0, body)
        elif text == "long":
            self.speak([f"word{n} " for n in range(2000)], pause=0.02)
        elif text == "slow":
            self.speak([f"word{n} " for n in range(4)], pause=0.5)
        else:
            said = self.perform(text, body)
            if not self.aborted.is_set() and not self.stopped:
                self.speak(said.split("\x00"))
        self.finish(finish)

    def finish(self, finish: str) -> None:
        done = self.info | {"time": {"created": 1, "completed": 2}}
        if self.aborted.is_set():
            # Like the real one: idle before what was cut off gets its end, and once more behind it.
            error = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
            emit("session.error", sessionID=self.session, error=error)
            status(self.session, "idle")
            keep(self.session, done | {"error": error})
            return
        keep_part(
            self.session, self.info["id"], {"type": "step-finish", "reason": finish, "tokens": TOKENS, "cost": 0.5}
        )
        keep(self.session, done | {"tokens": TOKENS, "cost": 0.5, "finish": finish})
        with LOCK:
            info = STORE.sessions[self.session]
            info["cost"] += 0.5
        emit("session.updated", sessionID=self.session, info=info)

    def speak(self, words: list[str], pause: float = 0.0) -> None:
        part = {"id": new_id("prt"), "type": "text", "text": "", "time": {"start": 1}}
        keep_part(self.session, self.info["id"], part)
        said = ""
        for word in words:
            said += word
            emit(
                "message.part.delta",
                sessionID=self.session,
                messageID=self.info["id"],
                partID=part["id"],
                field="text",
                delta=word,
            )
            if pause and self.aborted.wait(pause):
                break
        keep_part(self.session, self.info["id"], part | {"text": said, "time": {"start": 1, "end": 2}})

    def retry(self, code: int) -> None:
        for attempt in itertools.count(1):
            status(self.session, "retry", attempt=attempt, message=f"the model answers {code}", next=1)
            if self.aborted.wait(0.2):
                return

    def tool(self, name: str, given: Obj, part: Obj | None = None, **state: Any) -> Obj:
        part = part or {"id": new_id("prt"), "type": "tool", "tool": name, "callID": new_id("call")}
        return keep_part(self.session, self.info["id"], part | {"state": {"input": given} | state})

    def ask(self, kind: str, request: Obj, part: Obj) -> Obj:
        """Waits for an answer, or for an abort, which leaves the request behind as the real one does."""
        id = new_id("que" if kind == "question" else "per")
        request = {"id": id, "sessionID": self.session, **request}
        request["tool"] = {"messageID": self.info["id"], "callID": part["callID"]}
        waiting = ANSWERS[id] = queue.Queue()
        with LOCK:
            (STORE.questions if kind == "question" else STORE.permissions)[id] = request
        emit(f"{kind}.asked", **request)
        while not self.aborted.is_set():
            try:
                return waiting.get(timeout=0.05)
            except queue.Empty:
                pass
        return {}

    def perform(self, text: str, body: Obj) -> str:
        word, _, rest = text.partition(" ")
        match word:
            case "ask":
                return self.bash(rest)
            case "question":
                options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
                asked = {"questions": [{"question": "Which?", "header": "Q", "options": options}]}
                part = self.tool("question", asked, status="running")
                said = self.ask("question", asked, part)
                end = {"status": "error", "error": "The user dismissed this question"}
                if "answers" in said:
                    end = {"status": "completed", "output": json.dumps(said)}
                self.stopped = "answers" not in said
                self.tool("question", asked, part, **end)
                return json.dumps(said)
            case "child":
                return self.child(rest)
            case "recall":
                kept = [one for one in STORE.messages[self.session] if one["info"]["role"] == "assistant"]
                return " ".join(part.get("text", "") for one in kept for part in one["parts"])
            case "todo":
                emit("todo.updated", sessionID=self.session, todos=[{"content": rest, "status": "in_progress"}])
                return "noted"
            case "foreign":
                # Of somebody else on the same server.
                emit("message.part.delta", sessionID="ses_other", messageID="msg_x", partID="prt_x", delta="secret")
                emit("session.created", sessionID="ses_other", info={"id": "ses_other"})
                return "alone"
            case "next-year":
                emit("thing.of.next.year", sessionID=self.session)
                return "told"
            case "die":
                sys.stderr.write("the fake dies\n")
                sys.stderr.flush()
                os._exit(int(rest))
            case "huge":
                return "\x00".join(["x" * 50_000] * (int(rest) // 50_000))
            case "environment":
                return json.dumps(dict(os.environ))
            case "params":
                return json.dumps({name: value for name, value in body.items() if name not in ("parts", "message")})
            case _:
                return text

    def bash(self, command: str) -> str:
        given = {"command": command}
        part = self.tool("bash", {}, status="pending", raw="")
        part = self.tool("bash", given, part, status="running", time={"start": 1})
        request = {"permission": "bash", "patterns": [command], "metadata": given, "always": [f"{command} *"]}
        said = self.ask("permission", request, part)
        if self.aborted.is_set():
            self.tool("bash", given, part, status="error", error="Tool execution aborted")
            return ""
        if said["reply"] == "reject":
            error = "The user rejected permission to use this specific tool call."
            self.tool("bash", given, part, status="error", error=error)
            self.stopped = "message" not in said
            return json.dumps(said)
        meta = {"output": "done\n", "exit": 0}
        self.tool("bash", given, part, status="running", metadata={"output": "do"})
        time_ = {"start": 1, "end": 3}
        self.tool("bash", given, part, status="completed", output="done\n", metadata=meta, title=command, time=time_)
        return json.dumps(said)

    def child(self, prompt: str) -> str:
        given = {"description": "sub", "prompt": prompt}
        part = self.tool("task", given, status="running")
        info = create({"parentID": self.session, "title": "sub"})
        part = self.tool("task", given, part, status="running", metadata={"sessionId": info["id"]})
        run = Run(info["id"])
        run.aborted = self.aborted
        run.todo.append(store_prompt(info["id"], {"parts": [{"type": "text", "text": prompt}]}))
        run.loop()
        meta = {"sessionId": info["id"]}
        self.tool("task", given, part, status="completed", output="reported", metadata=meta)
        return "child done"


def create(body: Obj) -> Obj:
    info: Obj = {"id": new_id("ses"), "title": body.get("title", "New session"), "cost": 0, "version": "0.0.1"}
    info |= {name: body[name] for name in ("parentID", "permission") if name in body}
    with LOCK:
        STORE.sessions[info["id"]] = info
        STORE.messages[info["id"]] = []
        STORE.save()
    emit("session.created", sessionID=info["id"], info=info)
    return info


def store_prompt(session: str, body: Obj, **fields: Any) -> Obj:
    info: Obj = {"id": new_id("msg"), "role": "user", "sessionID": session, "time": {"created": 1}, **fields}
    keep(session, info)
    for part in body["parts"]:
        keep_part(session, info["id"], part)
    return body | {"message": info["id"]}


def prompt(session: str, body: Obj) -> None:
    with LOCK:
        run = RUNS.get(session)
        body = store_prompt(session, body)
        if BEHAVIOUR == "mute":
            return
        if run is not None:
            LOSSES[0] += 1
            if BEHAVIOUR == "forgetful" or (BEHAVIOUR == "loses" and LOSSES[0] == 1):
                return
            run.todo.append(body)
            return
        if BEHAVIOUR == "forgetful" and LOSSES[0]:
            return
        run = RUNS[session] = Run(session)
        run.todo.append(body)
    threading.Thread(target=run.loop, daemon=True).start()


def compact(session: str) -> None:
    run = Run(session)
    status(session, "busy")
    body = store_prompt(session, {"parts": [{"type": "compaction", "auto": False}]})
    info = {
        "id": new_id("msg"),
        "role": "assistant",
        "sessionID": session,
        "parentID": body["message"],
        "summary": True,
    }
    run.info = keep(session, info | {"time": {"created": 1}})
    run.speak(["what was said"])
    run.finish("stop")
    emit("session.compacted", sessionID=session)
    status(session, "idle")


def shell(session: str, command: str) -> None:
    run = Run(session)
    status(session, "busy")
    said = {"type": "text", "text": "The following tool was executed by the user", "synthetic": True}
    body = store_prompt(session, {"parts": [said]})
    info = {"id": new_id("msg"), "role": "assistant", "sessionID": session, "parentID": body["message"]}
    run.info = keep(session, info | {"time": {"created": 1}})
    part = run.tool("bash", {"command": command}, status="running")
    # Like the real one: the message is complete before its call.
    keep(session, info | {"time": {"created": 1, "completed": 2}})
    run.tool("bash", {"command": command}, part, status="completed", output="ran\n", metadata={"output": "ran\n"})
    status(session, "idle")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def reply(self, code: int, body: Any = None, kind: str = "application/json") -> None:
        content = b"" if code == 204 else body.encode() if kind == "text/html" else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        if code != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def not_found(self, name: str = "NotFoundError") -> None:
        key = "name" if name == "NotFoundError" else "_tag"
        self.reply(404, {key: name, "data": {"message": "not found"}})

    def do_GET(self) -> None:
        self.handle_method("GET")

    def do_POST(self) -> None:
        self.handle_method("POST")

    def do_PATCH(self) -> None:
        self.handle_method("PATCH")

    def do_DELETE(self) -> None:
        self.handle_method("DELETE")

    def handle_method(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        wanted = f"Basic {base64.b64encode(f'opencode:{PASSWORD}'.encode()).decode()}"
        if PASSWORD and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        url = urlsplit(self.path)
        path = url.path.strip("/").split("/")
        if path == ["event"]:
            self.stream()
        elif path[0] == "_test":
            self.control(path[1])
        elif path[0] == "session" and len(path) > 1 and path[1] != "status":
            self.session(method, path[1], path[2:], body, parse_qs(url.query))
        elif path[0] in ("permission", "question") and len(path) == 3:
            self.answered(path[0], path[1], path[2], body)
        else:
            self.about(method, "/".join(path), body)

    def control(self, what: str) -> None:
        """What only tests ask for: `cut` drops every stream of events, `away` refuses new ones until `back`."""
        if what == "away":
            AWAY.set()
        elif what == "back":
            AWAY.clear()
        with LOCK:
            for stream in STREAMS:
                stream.put(None)
        self.reply(200, len(STREAMS))

    def stream(self) -> None:
        if AWAY.is_set():
            self.reply(503, {})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        mine: queue.Queue[bytes | None] = queue.Queue()
        with LOCK:
            STREAMS.append(mine)
        connected = json.dumps({"id": new_id("evt"), "type": "server.connected", "properties": {}})
        self.wfile.write(f"data: {connected}\n\n".encode())
        try:
            while True:
                try:
                    data = mine.get(timeout=5)
                except queue.Empty:
                    data = b'data: {"id": "evt_0", "type": "server.heartbeat", "properties": {}}\n\n'
                if data is None:
                    break
                self.wfile.write(data)
        finally:
            with LOCK:
                STREAMS.remove(mine)
            self.close_connection = True

    def about(self, method: str, path: str, body: Obj) -> None:
        match path:
            case "global/health":
                self.reply(200, {"healthy": True, "version": "0.0.1"})
            case "config":
                self.reply(200, {"model": "p/m", "provider": {"p": {"options": {"apiKey": "sk-config-secret"}}}})
            case "config/providers":
                provider = {"id": "p", "name": "P", "options": {"apiKey": "sk-provider-secret"}, "models": {"m": MODEL}}
                self.reply(200, {"providers": [provider], "default": {"p": "m"}})
            case "agent":
                self.reply(200, AGENTS)
            case "command":
                self.reply(200, [{"name": "hello", "description": "greets", "hints": ["$ARGUMENTS"]}])
            case "experimental/tool/ids":
                self.reply(200, ["bash", "task"])
            case "mcp":
                self.reply(200, {body["name"]: {"status": "connected"}} if method == "POST" else {})
            case "session/status":
                self.reply(200, {session: {"type": "busy"} for session in RUNS})
            case "session" if method == "POST":
                self.reply(200, create(body))
            case "permission":
                self.reply(200, list(STORE.permissions.values()))
            case "question":
                self.reply(200, list(STORE.questions.values()))
            case _:
                self.reply(200, "<!doctype html>\n<html></html>", "text/html")

    def answered(self, kind: str, id: str, verb: str, body: Obj) -> None:
        with LOCK:
            store = STORE.questions if kind == "question" else STORE.permissions
            request = store.pop(id, None)
        if request is None:
            self.not_found("QuestionNotFoundError" if kind == "question" else "PermissionNotFoundError")
            return
        name = "question.rejected" if verb == "reject" else f"{kind}.replied"
        emit(name, sessionID=request["sessionID"], requestID=id, **body)
        ANSWERS.pop(id).put(body)
        self.reply(200, True)

    def session(self, method: str, id: str, rest: list[str], body: Obj, query: dict[str, list[str]]) -> None:
        if id not in STORE.sessions:
            self.not_found()
            return
        match (method, rest):
            case ("GET", []):
                self.reply(200, STORE.sessions[id])
            case ("PATCH", []):
                STORE.sessions[id] |= body
                emit("session.updated", sessionID=id, info=STORE.sessions[id])
                self.reply(200, STORE.sessions[id])
            case ("GET", ["message"]):
                self.page(id, query)
            case ("DELETE", ["message", message]):
                with LOCK:
                    STORE.messages[id] = [one for one in STORE.messages[id] if one["info"]["id"] != message]
                emit("message.removed", sessionID=id, messageID=message)
                self.reply(200, True)
            case ("POST", ["prompt_async"]):
                prompt(id, body)
                self.reply(204)
            case ("POST", ["command"]):
                prompt(id, {"parts": [{"type": "text", "text": f"{body['command']} {body['arguments']}"}]})
                self.reply(200, {})
            case ("POST", ["shell"]):
                shell(id, body["command"])
                self.reply(200, {})
            case ("POST", ["summarize"]):
                compact(id)
                self.reply(200, True)
            case ("POST", ["abort"]):
                if id in RUNS:
                    RUNS[id].aborted.set()
                self.reply(200, True)
            case ("POST", ["fork"]):
                info = create({"title": "fork"})
                with LOCK:
                    kept = [one for one in STORE.messages[id] if one["info"]["id"] < body.get("messageID", "msg_z")]
                    STORE.messages[info["id"]] = json.loads(json.dumps(kept))
                self.reply(200, info)
            case ("GET", ["diff"]):
                self.reply(200, [{"file": "a.txt", "patch": "", "additions": 1, "deletions": 0}])
            case ("POST", ["revert"]):
                self.reply(200, STORE.sessions[id] | {"revert": body})
            case ("POST", ["unrevert"]):
                self.reply(200, STORE.sessions[id])
            case _:
                self.reply(200, "<!doctype html>\n<html></html>", "text/html")

    def page(self, id: str, query: dict[str, list[str]]) -> None:
        with LOCK:
            found = list(STORE.messages[id])
        if before := query.get("before"):
            found = [one for one in found if one["info"]["id"] < before[0]]
        limit = int(query.get("limit", ["0"])[0])
        page = found[-limit:] if limit else found
        content = json.dumps(page).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if len(page) < len(found):
            self.send_header("X-Next-Cursor", page[0]["info"]["id"])
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def main() -> None:
    if "--version" in sys.argv:
        print("0.0.1")  # noqa: T201  # it is a program
        return
    if BEHAVIOUR == "exit":
        sys.stderr.write("first line\nthis directory is cursed\n")
        sys.exit(3)
    marker = os.environ.get("STAND_IN_MARKER")
    if BEHAVIOUR == "taken" and marker and not Path(marker).exists():
        Path(marker).touch()
        sys.stderr.write("EADDRINUSE: address already in use\n")
        sys.exit(1)
    if BEHAVIOUR == "deaf":
        time.sleep(600)
    STORE.load()
    port = int(sys.argv[sys.argv.index("--port") + 1])
    server = Server(("127.0.0.1", port), Handler)
    sys.stdout.write(f"opencode server listening on http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


main()
