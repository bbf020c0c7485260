"""The demo agent with a journal of its own: what it was told and what it did, whatever becomes of the log.

One JSON a line, appended at once to the file that the variable `CHAOS_JOURNAL` names, by all lives of the agent:
`{"t", "pid", "incarnation", "kind", ...}`. Kinds: `start` {native, resumed}, `prompt` {id, steer}, `answer` {ask, allow,
input, answers}, `interrupt`, `set` {model, mode}, `native` {params}, `turn` {id}: a prompt takes effect, `steered` {id}:
likewise, `ran` {ask, command}: a tool's effect, `turn_end` {outcome}.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from trunkline_adapters.demo.agent import Agent, main, parse


class ChaosAgent(Agent):
    def __init__(self, native: str, state: Path, history: list[str]) -> None:
        super().__init__(native, state, history)
        self._journal = os.open(os.environ["CHAOS_JOURNAL"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.note("start", native=native, prompts=len(history))

    def note(self, kind: str, **fields: Any) -> None:
        about = {"t": time.time(), "pid": os.getpid(), "incarnation": os.environ["TRUNKLINE_INCARNATION"]}
        # One write: lines of a dying life and of the next never mix.
        os.write(self._journal, (json.dumps(about | {"kind": kind} | fields) + "\n").encode())

    def hear(self, message: dict[str, Any]) -> None:
        match message.get("type"):
            case "prompt":
                self.note("prompt", id=message["id"], steer=bool(message.get("steer")))
            case "answer":
                self.note("answer", **{key: message.get(key) for key in ("ask", "allow", "input", "answers")})
            case "interrupt":
                self.note("interrupt")
            case "set":
                self.note("set", model=message.get("model"), mode=message.get("mode"))
            case "native":
                self.note("native", params=message.get("params"))
            case _:
                pass
        super().hear(message)

    def say(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "turn_started" if message["prompt"] is not None:
                self.note("turn", id=message["prompt"])
            case "steered":
                self.note("steered", id=message["prompt"])
            case "tool_done" if message["status"] == "completed":
                self.note("ran", tool=message["tool"], output=message["output"])
            case "turn_done":
                self.note("turn_end", outcome=message["outcome"])
            case _:
                pass
        super().say(message)


if __name__ == "__main__":
    asyncio.run(main(parse(sys.argv[1:]), ChaosAgent))
