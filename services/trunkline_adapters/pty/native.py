"""What passes between a session and a program's terminal, as JSON objects. `at` is seconds since the terminal was opened.

From the terminal: `opened` {columns, rows, command}, `output` {data}, `exit` {code, signal}, `refused` {line}.
From us: `logged` {text}: a message as the program's own log has it; `input` {data, command?, begins?, answers?, reports?, person?, leaves?}, `resize` {columns, rows}, and `tick`, which is said to nobody: time has
passed. An asciinema recording says the same in its own form (`cast.py`).
"""

from typing import Any

from trunkline_agentkit.fields import Obj, number, text


def typed(
    data: str,
    at: float,
    *,
    begins: bool = False,
    command: str | None = None,
    answers: str | None = None,
    reports: bool = False,
    person: bool = False,
    leaves: bool = False,
) -> Obj:
    """Keys. `begins`: a prompt's end, that of `command`; `answers`: an ask by its id; `reports`: what the
    terminal itself says, as it was asked to; `person`: somebody types at the terminal; `leaves`: the program is to end.
    """
    message: dict[str, Any] = {"type": "input", "at": round(at, 4), "data": data}
    if begins:
        message |= {"begins": True, "command": command}
    if answers is not None:
        message["answers"] = answers
    if reports:
        message["reports"] = True
    if person:
        message["person"] = True
    if leaves:
        message["leaves"] = True
    return message


def logged(said: str, at: float) -> Obj:
    return {"type": "logged", "at": round(at, 4), "text": said}


def resized(columns: int, rows: int, at: float) -> Obj:
    return {"type": "resize", "at": round(at, 4), "columns": columns, "rows": rows}


def tick(at: float) -> Obj:
    return {"type": "tick", "at": round(at, 4)}


def time_of(message: Obj) -> float | None:
    return number(message, "at")


def kind_of(message: Obj) -> str:
    return text(message, "type") or "untyped"
