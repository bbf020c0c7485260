#!/usr/bin/env python3
"""A fake of an A2A server for coding: `a2a_stand_in.py LOG` prints its address, serves on loopback, and does what a prompt says.

Like the real one it ends a turn with `input-required`, cancels a task when the connection on which its message came is closed,
and closes a connection that is idle (after five seconds). Everything it says is written to LOG, a line each.
"""

import asyncio
import contextlib
import json
import sys
import uuid
from pathlib import Path
from typing import Any

from aiohttp import web

Obj = dict[str, Any]
LOG = Path(sys.argv[1])
LOST = -32001


class Task:
    def __init__(self) -> None:
        self.id, self.context = str(uuid.uuid4()), str(uuid.uuid4())
        self.state = "submitted"
        self.cancelled = asyncio.Event()
        self.asked: tuple[str, Obj, asyncio.Transport] | None = None
        """Call, its arguments, and the connection on which it was asked for."""


class Fake:
    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.calls = 0
        self.connections = 0

    async def card(self, request: web.Request) -> web.Response:
        return self.answer(
            {
                "name": "Fake",
                "version": "1.2",
                "protocolVersion": "0.3.0",
                "url": f"http://{request.host}/",
                "capabilities": {"streaming": True},
            }
        )

    async def rpc(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        number, params = message["id"], message["params"]
        match message["method"]:
            case "message/stream":
                return await self.talk(request, number, params["message"])
            case "tasks/get" if params["id"] in self.tasks:
                return self.answer(self.result(number, self.described(self.tasks[params["id"]])))
            case "tasks/cancel" if params["id"] in self.tasks:
                task = self.tasks[params["id"]]
                task.state = "canceled"
                task.cancelled.set()
                return self.answer(self.result(number, self.described(task)))
            case "tasks/get" | "tasks/cancel":
                failure = {"code": LOST, "message": f"Task not found: {params['id']}"}
            case method:
                failure = {"code": -32601, "message": f"Method not found: {method}"}
        return self.answer({"jsonrpc": "2.0", "id": number, "error": failure})

    def answer(self, body: Obj) -> web.Response:
        self.log(json.dumps(body))
        return web.Response(text=json.dumps(body), content_type="application/json")

    @staticmethod
    def log(line: str) -> None:
        with LOG.open("a") as file:
            file.write(line + "\n")

    @staticmethod
    def result(number: Any, body: Obj) -> Obj:
        return {"jsonrpc": "2.0", "id": number, "result": body}

    @staticmethod
    def described(task: Task) -> Obj:
        return {"kind": "task", "id": task.id, "contextId": task.context, "status": {"state": task.state}}

    async def talk(self, request: web.Request, number: Any, message: Obj) -> web.StreamResponse:
        task = self.tasks.get(message.get("taskId", ""))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        stream = Stream(self, response, number)
        if "taskId" in message and task is None:
            failure = {"code": LOST, "message": f"Task not found: {message['taskId']}"}
            await stream.put({"jsonrpc": "2.0", "id": number, "error": failure})
        else:
            if task is None:
                task = Task()
                self.tasks[task.id] = task
                await stream.put(self.result(number, self.described(task)))
            stream.task = task
            transport = request.transport
            assert isinstance(transport, asyncio.Transport)
            with contextlib.suppress(ConnectionError):
                await self.turn(stream, task, message, transport)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response

    async def turn(self, stream: "Stream", task: Task, message: Obj, transport: asyncio.Transport) -> None:
        part = message["parts"][0]
        if part["kind"] == "data":
            await self.decided(stream, task, part["data"], transport)
            return
        task.state = "working"
        await stream.status("working", about="state-change")
        text = part["text"]
        word, _, rest = text.partition(" ")
        match word:
            case "ask" | "tool":
                self.calls += 1
                call, given = f"call-{self.calls}", {"command": rest}
                await stream.tool(call, given, "validating")
                if word == "ask":
                    details = {"type": "exec", "title": "Confirm", "command": rest}
                    await stream.tool(call, given, "awaiting_approval", confirmationDetails=details)
                    task.asked = (call, given, transport)
                    await stream.status("input-required", final=True, about="state-change")
                    return
                await stream.tool(call, given, "success", response={"resultDisplay": "it-ran"})
                await stream.say(["done"])
            case "long":
                await stream.say([f"word{n} " for n in range(2000)], pause=0.02)
            case "slow":
                await stream.say([f"word{n} " for n in range(4)], pause=0.5)
            case "huge":
                await stream.say(["x" * 50_000] * (int(rest) // 50_000))
            case "break":
                await stream.say(["I am "])
                return
            case "die":
                await stream.say(["I am "])
                sys.exit(3)
            case _ if word.startswith("err"):
                await stream.status(
                    "working", about="state-change", said=f"Agent Error: {word[3:]}", error="[API Error: unknown]"
                )
            case _:
                await stream.say([text[:3], text[3:]])
        if task.cancelled.is_set():
            await stream.status("canceled", final=True, about="state-change", said="Task canceled by user request.")
        else:
            task.state = "input-required"
            await stream.status("input-required", final=True, about="state-change")

    async def decided(self, stream: "Stream", task: Task, answer: Obj, transport: asyncio.Transport) -> None:
        assert task.asked is not None
        call, given, asked_on = task.asked
        task.asked = None
        if asked_on is not transport or task.cancelled.is_set():
            await stream.tool(call, given, "cancelled")
            await stream.status("input-required", final=True, about="state-change", said="Execution aborted by client.")
            return
        if answer["outcome"] == "cancel":
            await stream.tool(call, given, "cancelled")
        else:
            await stream.tool(call, given, "executing")
            await stream.artifact(f"tool-{call}-output", "it-ran")
            await stream.tool(call, given, "success", response={"resultDisplay": "it-ran"})
        await stream.say([json.dumps(answer)])
        task.state = "input-required"
        await stream.status("input-required", final=True, about="state-change")


class Stream:
    """One answer in many events."""

    def __init__(self, fake: Fake, response: web.StreamResponse, number: Any) -> None:
        self.fake, self.response, self.number = fake, response, number
        self.task = Task()

    async def put(self, body: Obj) -> None:
        line = json.dumps(body)
        self.fake.log(line)
        await self.response.write(f"data: {line}\n\n".encode())

    async def event(self, kind: str, **fields: Any) -> None:
        place = {"kind": kind, "taskId": self.task.id, "contextId": self.task.context}
        await self.put(self.fake.result(self.number, place | fields))

    async def status(
        self,
        state: str,
        *parts: Obj,
        final: bool = False,
        about: str = "text-content",
        said: str | None = None,
        **more: str,
    ) -> None:
        parts = ({"kind": "text", "text": said},) if said is not None else parts
        body: Obj = {"state": state}
        if parts:
            body["message"] = {"kind": "message", "role": "agent", "parts": list(parts), "messageId": str(uuid.uuid4())}
        metadata = {"coderAgent": {"kind": about}, "model": "m", **more}
        await self.event("status-update", status=body, final=final, metadata=metadata)

    async def tool(self, call: str, given: Obj, state: str, **more: Any) -> None:
        request = {"callId": call, "name": "run_shell_command", "args": given}
        about = "tool-call-confirmation" if state == "awaiting_approval" else "tool-call-update"
        data = {"request": request, "status": state, **more}
        await self.status("working", {"kind": "data", "data": data}, about=about)

    async def artifact(self, name: str, said: str) -> None:
        artifact = {"artifactId": name, "parts": [{"kind": "text", "text": said}]}
        await self.event("artifact-update", artifact=artifact, append=True, lastChunk=False)

    async def say(self, words: list[str], pause: float = 0.0) -> None:
        for word in words:
            await self.status("working", {"kind": "text", "text": word})
            if pause:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.task.cancelled.wait(), pause)
                    return


async def main() -> None:
    fake = Fake()
    app = web.Application()
    app.add_routes([web.get("/.well-known/agent-card.json", fake.card), web.post("/", fake.rpc)])
    runner = web.AppRunner(app, keepalive_timeout=5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)  # noqa: T201  # it is a program
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
