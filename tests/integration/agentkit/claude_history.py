"""Long histories in the format of the real CLI: a recorded turn with a tool call, repeated under new ids and later times."""

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

RECORDED: Final = (
    Path(__file__).parents[2] / "recordings/history/claude/tools/54fb7179-ec3c-4775-bedd-e64c754397a6.jsonl"
)
MESSAGES_A_TURN: Final = 3
"""A prompt, a message with a text and a call, a message about its result."""
EVENTS_A_TURN: Final = 8
"""The prompt, the turn's start, text, call and start of the tool, its end, the last text, the turn's end."""


def lines(turns: int, native: str) -> Iterator[dict[str, Any]]:
    """The recorded file's first turn, with all of its bookkeeping, `turns` times."""
    recorded = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    second = [n for n, line in enumerate(recorded) if line.get("operation") == "enqueue"][1]
    begin = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    for turn in range(turns):
        names = {name: f"{name}{turn}" for line in recorded[:second] for name in _ids(line)}
        for number, line in enumerate(recorded[:second]):
            text = json.dumps(line)
            for name, fresh in names.items():
                text = text.replace(f'"{name}"', f'"{fresh}"')
            made: dict[str, Any] = json.loads(text)
            if "timestamp" in made:
                moment = begin + dt.timedelta(seconds=turn * 60 + number)
                made["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            if "sessionId" in made:
                made["sessionId"] = native
            yield made


def _ids(line: dict[str, Any]) -> Iterator[str]:
    message = line.get("message", {})
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    names = [line.get("uuid"), message.get("id"), *(block.get("id") for block in blocks)]
    yield from (name for name in names if name)


def write(home: Path, turns: int, native: str | None = None, cwd: str = "-home-dev-project") -> Path:
    """A history below `home` as the CLI would have written it; its name is the native id."""
    native = native or str(uuid.uuid4())
    path = home / ".claude" / "projects" / cwd / f"{native}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines(turns, native)))
    return path
