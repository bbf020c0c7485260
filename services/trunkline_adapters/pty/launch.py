"""How a program is started in a terminal: its command, environment and size, and what it can't honour. Pure."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from trunkline_adapters.pty.profiles import PROFILES, Profile, profile_of
from trunkline_adapters.pty.tmux import ATTACHED
from trunkline_agentkit import Start, unsupported
from trunkline_agentkit.environment import named_variables
from trunkline_agentkit.prompts import as_text
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import Block

NATIVE_OPTIONS: Final = frozenset({"command", "variables", "columns", "rows", "writable"})
"""Names in `options.native`: the program and its arguments in place of the profile's, names of variables of the worker's, the size, whether
something may be typed into a tmux session of the user's own."""

SIZE: Final = (120, 40)
_LARGEST_SIDE: Final = 1000
_BRIDGE: Final = str(Path(__file__).with_name("bridge.py"))
_UTF8: Final = "C.UTF-8"


def choose(start: Start, source: Mapping[str, str]) -> Profile:
    """The profile of the program that is asked for. Raises TrunklineError `bad_params`, `unsupported`."""
    native = start.options.native
    unknown = sorted(set(native) - NATIVE_OPTIONS)
    if unknown:
        raise TrunklineError(
            "unsupported",
            f"native options {', '.join(map(repr, unknown))} are unknown; there are: {', '.join(sorted(NATIVE_OPTIONS))}",
            capability="options",
            options=unknown,
        )
    for name in ("command", "variables"):
        given = native.get(name, [])
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise TrunklineError("bad_params", f"{name!r} must be a list of texts")
    command: list[str] = native.get("command") or []
    if start.agent is not None and start.agent.startswith(ATTACHED):
        return profile_of([], source)
    unnamed = start.agent is None and command
    chosen = profile_of(command, source) if unnamed else PROFILES.get(start.agent, source)
    if command:
        chosen = msgspec.structs.replace(chosen, command=tuple(command))
    if start.options.model is not None and not chosen.model:
        raise unsupported("options", f"{chosen.title} can't be told which model to use: leave 'model' out")
    if start.fork:
        raise unsupported("fork", f"{chosen.title} can't copy a session")
    return chosen


def size(native: Mapping[str, Any], usual: tuple[int, int] = SIZE) -> tuple[int, int]:
    """Columns and rows. Raises TrunklineError `bad_params`."""
    found = native.get("columns", usual[0]), native.get("rows", usual[1])
    for side in found:
        if not isinstance(side, int) or isinstance(side, bool) or not 1 <= side <= _LARGEST_SIDE:
            raise TrunklineError("bad_params", f"'columns' and 'rows' are numbers from 1 to {_LARGEST_SIDE}")
    return found


def arguments(path: str, chosen: Profile, model: str | None) -> list[str]:
    """The program with its arguments."""
    chooses = [word.replace("{model}", model) for word in chosen.model] if model is not None else []
    return [path, *chosen.command[1:], *chooses]


def bridged(argv: list[str], columns: int, rows: int) -> list[str]:
    """The bridge with a program behind it."""
    return [sys.executable, "-I", _BRIDGE, str(columns), str(rows), *argv]


def environment(start: Start, chosen: Profile, source: Mapping[str, str]) -> dict[str, str]:
    """The Start's environment, with the profile's variables, those that the session takes from the worker's, and a terminal's."""
    names = (*chosen.variables, *start.options.native.get("variables", []))
    found = {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        **named_variables(names, source),
        **chosen.environment,
        **start.environment,
    }
    locale = found.get("LC_ALL") or found.get("LC_CTYPE") or found.get("LANG") or ""
    if "utf" not in locale.lower():
        found["LC_ALL"] = _UTF8
    return found


def prompt_text(content: list[Block]) -> str:
    """A prompt's blocks as one text that holds no key but Enter and Tab. Raises TrunklineError `bad_params`."""
    said = "\n\n".join(as_text(block) for block in content).replace("\r\n", "\n").replace("\r", "\n")
    said = "".join(one for one in said if one in "\n\t" or not (ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0))
    if not said.strip():
        raise TrunklineError("bad_params", "the prompt is empty: say something")
    return said


def keystrokes(said: str, *, pastes: bool) -> str:
    """What is typed for a text, without the Enter at its end."""
    if "\n" not in said:
        return said
    return f"\x1b[200~{said}\x1b[201~" if pastes else said.replace("\n", "\r")
