"""The demo agent: a small program that plays a coding agent over NDJSON, following the words of each prompt.

A prompt is one or more steps, separated by `;`:

    say TEXT          streams TEXT word by word
    slow [N]          streams N numbered words, 20 a second (1,000 by default)
    ask COMMAND       asks for permission to "run" COMMAND, and reports what was decided
    question TEXT     asks a question with the options yes and no
    background [S]    ends the turn; S seconds later a turn starts by itself
    silent            says nothing until it is interrupted
    big N             a message of N characters
    children          starts a child, and a grandchild in a session of its own, that outlive everything but SIGKILL
    novelty           sends a message of a type that nobody knows
    noise             prints a line that is no JSON
    cost USD          the turn costs that much
    fail MESSAGE      ends the turn with an error
    crash [CODE]      ends the program in mid-turn
    leave             ends the turn and the program
    history           says how many prompts this session has had

Anything else is echoed. Only the standard library is used, and nothing is ever run.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

VERSION = "1"
WORDS_PER_SECOND = 20


class Interrupted(Exception):  # noqa: N818  # it is a way for a turn to go, no error
    pass


class Failed(Exception):  # noqa: N818  # likewise
    pass


class Agent:
    """One session of the demo agent. `state` is a file with the prompts so far."""

    def __init__(self, native: str, state: Path, history: list[str]) -> None:
        self.native = native
        self.state = state
        self.history = history
        self.model = "demo-small"
        self.mode = "ask"
        self.queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.interrupt = asyncio.Event()
        self.answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.asks: dict[str, dict[str, Any]] = {}
        self.steered: list[dict[str, Any]] = []
        self.turns = asyncio.Lock()
        self.count = 0
        self.cost: float | None = None
        self.background: set[asyncio.Task[None]] = set()

    def keep(self) -> None:
        """Writes the prompts down, whole or not at all: a kill in between must not cost the session."""
        beside = self.state.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps({"history": self.history}))
        beside.replace(self.state)

    def say(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind}-{os.getpid()}-{self.count}"

    def hear(self, message: dict[str, Any]) -> None:
        """One message of the host."""
        match message.get("type"):
            case "hello":
                self.say(
                    {
                        "type": "ready",
                        "session": self.native,
                        "version": VERSION,
                        "model": self.model,
                        "mode": self.mode,
                        "models": ["demo-small", "demo-large"],
                        "modes": ["ask", "free"],
                    }
                )
            case "prompt" if self.running and message.get("steer"):
                self.steered.append(message)
                self.say({"type": "steered", "prompt": message["id"]})
            case "prompt":
                if self.running:
                    self.say({"type": "queued", "prompt": message["id"]})
                self.queue.put_nowait(message)
            case "interrupt":
                if message.get("cancel_queued"):
                    while not self.queue.empty():
                        self.say({"type": "cancelled", "prompt": self.queue.get_nowait()["id"]})
                        self.queue.task_done()
                if self.running:
                    self.interrupt.set()
            case "answer":
                waiting = self.answers.get(message.get("ask", ""))
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            case "set":
                self.model = message.get("model", self.model)
                self.mode = message.get("mode", self.mode)
                self.say({"type": "changed", "model": self.model, "mode": self.mode})
            case "list_asks":
                self.say({"type": "asks", "id": message.get("id"), "asks": sorted(self.asks)})
            case "native":
                self.say({"type": "native_result", "id": message.get("id"), "echo": message.get("params")})
            case _:
                self.say({"type": "refused", "what": message.get("type")})

    async def run(self) -> None:
        while True:
            prompt = await self.queue.get()
            self.history.append(prompt["text"])
            self.keep()
            await self.turn(prompt["text"], prompt["id"], "prompt")
            self.queue.task_done()

    async def finish(self) -> None:
        """End of input: what runs or waits is finished."""
        await self.queue.join()
        await asyncio.gather(*self.background)

    @property
    def running(self) -> bool:
        return self.turns.locked()

    async def turn(self, text: str, prompt: str | None, trigger: str) -> None:
        async with self.turns:
            await self.play(text, prompt, trigger)
        if "leave" in text.split():
            sys.exit(0)

    async def play(self, text: str, prompt: str | None, trigger: str) -> None:
        self.interrupt.clear()
        self.cost = None
        self.say({"type": "turn_started", "prompt": prompt, "trigger": trigger})
        outcome, error = "success", None
        try:
            for step in (part.strip() for part in text.split(";")):
                await self.step(step)
                while self.steered:
                    await self.step(self.steered.pop(0)["text"])
        except Interrupted:
            outcome = "interrupted"
        except Failed as failure:
            outcome, error = "error", str(failure)
        for ask in list(self.asks):
            del self.asks[ask]
            self.say({"type": "ask_cancelled", "ask": ask})
        usage: dict[str, float] = {"input": 10, "output": len(text)}
        if self.cost is not None:
            usage["cost_usd"] = self.cost
        self.say({"type": "turn_done", "trigger": trigger, "outcome": outcome, "error": error, "usage": usage})

    async def step(self, step: str) -> None:
        word, _, rest = step.partition(" ")
        match word:
            case "say":
                await self.stream(rest.split(" "), 0.0)
            case "slow":
                await self.stream([f"word{n}" for n in range(int(rest or 1000))], 1 / WORDS_PER_SECOND)
            case "ask":
                await self.ask(rest)
            case "question":
                await self.question(rest)
            case "background":
                task = asyncio.create_task(self.later(float(rest or 0)))
                self.background.add(task)
                task.add_done_callback(self.background.discard)
            case "cost":
                self.cost = float(rest)
            case "silent":
                await self.interrupt.wait()
                raise Interrupted
            case "big":
                self.say({"type": "message", "message": self.new("m"), "text": "x" * int(rest)})
            case "children":
                start_children()
            case "novelty":
                self.say({"type": "novelty", "payload": {"a": 1}})
            case "noise":
                sys.stdout.write("*** demo agent: new version available ***\n")
            case "fail":
                raise Failed(rest)
            case "crash":
                sys.stderr.write("demo agent: crashing on demand, api_key=sk-demo-0123456789abcdef0123\n")
                sys.stderr.flush()
                os._exit(int(rest or 3))
            case "history":
                await self.stream([f"prompts:{len(self.history)}"], 0.0)
            case "leave":
                pass
            case _:
                await self.stream(f"You said: {step}".split(" "), 0.0)

    async def stream(self, words: list[str], pause: float) -> None:
        message = self.new("m")
        text = ""
        interrupted = False
        for word in words:
            piece = word if not text else f" {word}"
            text += piece
            self.say({"type": "text", "message": message, "text": piece})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.interrupt.wait()
            if self.interrupt.is_set():
                interrupted = True
                break
        self.say({"type": "message", "message": message, "text": text, "aborted": interrupted})
        if interrupted:
            raise Interrupted

    async def ask(self, command: str) -> None:
        tool = self.new("t")
        self.say({"type": "tool_started", "tool": tool, "name": "run", "input": {"command": command}})
        answer: dict[str, Any] = {"allow": True, "input": None}
        if self.mode == "ask":
            answer = await self.wait_for(
                {"type": "ask", "ask": f"a-{tool}", "tool": tool, "name": "run", "input": {"command": command}}, tool
            )
        if answer["allow"]:
            ran = (answer.get("input") or {}).get("command", command)
            self.say({"type": "tool_output", "tool": tool, "text": f"running {ran}"})
            self.say({"type": "tool_done", "tool": tool, "status": "completed", "output": f"ran: {ran}"})
        else:
            self.say({"type": "tool_done", "tool": tool, "status": "rejected", "output": answer.get("message") or ""})
            if answer.get("interrupt"):
                raise Interrupted

    async def question(self, text: str) -> None:
        ask = self.new("q")
        answer = await self.wait_for(
            {"type": "question", "ask": ask, "text": text or "Go on?", "options": ["yes", "no"]}, None
        )
        await self.stream(f"You answered: {json.dumps(answer.get('answers'), sort_keys=True)}".split(" "), 0.0)

    async def wait_for(self, ask: dict[str, Any], tool: str | None) -> dict[str, Any]:
        identifier: str = ask["ask"]
        self.answers[identifier] = asyncio.get_running_loop().create_future()
        self.asks[identifier] = ask
        self.say(ask)
        stopping = asyncio.ensure_future(self.interrupt.wait())
        try:
            await asyncio.wait({self.answers[identifier], stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if not self.answers[identifier].done():
            if tool is not None:
                self.say({"type": "tool_done", "tool": tool, "status": "cancelled", "output": ""})
            raise Interrupted
        del self.asks[identifier]
        return self.answers.pop(identifier).result()

    async def later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.turn("say The background task has ended.", None, "background")


def start_children() -> None:
    """A child like an MCP server, and through it one that leaves the group and the session, as daemons do."""
    sleeper = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", sleeper], stdin=subprocess.DEVNULL)
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)",
            sleeper,
        ],
        check=True,
    )


async def lines() -> AsyncIterator[bytes]:
    """Lines of standard input of any length, read by a thread, because a pipe may be shared with other readers."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def read() -> None:
        # Not through sys.stdin: its lock, held by a waiting thread, makes the interpreter abort when it ends.
        rest = b""
        while data := os.read(0, 65536):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                loop.call_soon_threadsafe(queue.put_nowait, line)
        with contextlib.suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


async def main(arguments: argparse.Namespace, kind: type[Agent] = Agent) -> None:
    if arguments.exit_at_start is not None:
        sys.stderr.write("demo agent: told to leave at once\n")
        sys.exit(arguments.exit_at_start)
    states = Path(os.environ.get("TMPDIR", tempfile.gettempdir())).parent / "demo-agent"
    states.mkdir(exist_ok=True)
    native = arguments.session or str(uuid.uuid4())
    history: list[str] = []
    if arguments.session is not None:
        old = states / f"{arguments.session}.json"
        if not old.exists():
            sys.stderr.write(f"demo agent: no session {arguments.session}\n")
            sys.exit(1)
        history = json.loads(old.read_text())["history"]
        if arguments.fork or arguments.new_id:
            native = str(uuid.uuid4())
    agent = kind(native, states / f"{native}.json", history)
    agent.keep()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(agent.run())
        async for line in lines():
            agent.hear(json.loads(line))
        await agent.finish()
        running.cancel()


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo-agent", description="A scripted agent; see the module's text.")
    parser.add_argument("--session", help="take up this session")
    parser.add_argument("--fork", action="store_true", help="take up a copy of it")
    parser.add_argument("--new-id", action="store_true", help="give it a new id, as some agents do")
    parser.add_argument("--exit-at-start", type=int, help="leave at once with this code")
    return parser.parse_args(argv)


if __name__ == "__main__":
    asyncio.run(main(parse(sys.argv[1:])))
