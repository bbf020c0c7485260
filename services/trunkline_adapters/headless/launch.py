"""How an agent is started for one turn: its program, arguments and environment, and what it can't honour. Pure."""

from collections.abc import Mapping
from importlib import resources
from typing import Final

import msgspec

from trunkline_adapters.headless.profiles import PROFILES, Profile
from trunkline_agentkit import Start, unsupported
from trunkline_agentkit.environment import named_variables
from trunkline_agentkit.prompts import as_text
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import Block
from trunkline_wire.session import SessionOptions

NATIVE_OPTIONS: Final = frozenset({"command", "variables"})
"""Names in `options.native`: the program and its arguments in place of the profile's, names of variables of the worker's."""

_WHOLE_OUTPUT: Final = resources.files("trunkline_adapters.headless").joinpath("whole_output.cjs")
_LOADING: Final[Mapping[str, Mapping[str, str]]] = {
    "node": {"NODE_OPTIONS": f'--require "{_WHOLE_OUTPUT}"'},
    # It knows no quotes here: below a directory with a blank in its name it does without.
    "bun": {} if " " in str(_WHOLE_OUTPUT) else {"BUN_OPTIONS": f"--preload {_WHOLE_OUTPUT}"},
}
"""Variables that have a runtime load it before its program."""

LARGEST_ARGUMENT: Final = 128 * 1024 - 2
"""Bytes of a prompt that goes as an argument: Linux takes no more in one."""


def choose(start: Start, source: Mapping[str, str]) -> Profile:
    """The profile of the agent that is asked for. Raises TrunklineError `bad_params`, `unsupported`."""
    options = start.options
    unknown = sorted(set(options.native) - NATIVE_OPTIONS)
    if unknown:
        raise TrunklineError(
            "unsupported",
            f"native options {', '.join(map(repr, unknown))} are unknown; there are: {', '.join(sorted(NATIVE_OPTIONS))}",
            capability="options",
            options=unknown,
        )
    for name in sorted(NATIVE_OPTIONS):
        given = options.native.get(name, [])
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise TrunklineError("bad_params", f"{name!r} must be a list of texts")
    chosen = PROFILES.get(start.agent, source)
    if command := options.native.get("command"):
        chosen = msgspec.structs.replace(chosen, command=tuple(command))
    _check(start, chosen)
    return chosen


def _check(start: Start, chosen: Profile) -> None:
    options, default = start.options, SessionOptions()
    able = chosen.capabilities
    asked = ("model", "mode", "resume_native")
    lacking = [name for name in asked if name not in able.options and getattr(options, name) != getattr(default, name)]
    if lacking:
        raise TrunklineError(
            "unsupported",
            f"{chosen.title} does not honour {', '.join(map(repr, lacking))}: leave them out",
            capability="options",
            options=lacking,
        )
    if start.fork:
        raise unsupported("fork", f"{chosen.title} can't copy a session")
    if options.mode is not None:
        check_mode(chosen, options.mode)


def check_mode(chosen: Profile, mode: str) -> None:
    """Raises TrunklineError `unsupported`, or `bad_params` naming the modes that there are."""
    if not chosen.modes:
        raise unsupported("mode_switching", f"{chosen.title} has no modes, so {mode!r} can't be set")
    if mode not in chosen.modes:
        raise TrunklineError("bad_params", f"mode {mode!r} is unknown; there are: {', '.join(chosen.modes)}")


def environment(start: Start, chosen: Profile, source: Mapping[str, str]) -> dict[str, str]:
    """The Start's environment, with the profile's variables and those that it, or the session, takes from the worker's."""
    names = (*chosen.variables, *start.options.native.get("variables", []))
    waiting = {} if chosen.runtime is None else _LOADING[chosen.runtime]
    return {**named_variables(names, source), **waiting, **chosen.environment, **start.environment}


def arguments(
    path: str, chosen: Profile, said: str, *, session: str | None, model: str | None, mode: str | None
) -> list[str]:
    """The command of one run. `session` is the native session to go on with."""
    argv = [path]
    if session is not None:
        argv += [word.replace("{session}", session) for word in chosen.resume]
    argv += chosen.command[1:]
    if model is not None:
        argv += [word.replace("{model}", model) for word in chosen.model]
    if mode is not None:
        argv += chosen.modes.get(mode, ())
    if chosen.prompt == "argument":
        # A blank keeps it from being taken for an option.
        argv.append(f" {said}" if said.startswith("-") else said)
    return argv


def prompt_text(chosen: Profile, content: list[Block]) -> str:
    """A prompt's blocks as one text. Raises TrunklineError `bad_params` for what can't be sent so."""
    said = "\n\n".join(as_text(block) for block in content).replace("\r\n", "\n").replace("\r", "\n")
    if not said.strip():
        raise TrunklineError("bad_params", "the prompt is empty: say something")
    if chosen.prompt == "argument":
        if "\0" in said:
            raise TrunklineError("bad_params", f"{chosen.title} can't be given a prompt with a zero byte")
        if len(said.encode()) >= LARGEST_ARGUMENT:
            raise TrunklineError(
                "bad_params", f"{chosen.title} takes prompts up to 128 KiB: put what is longer into a file and name it"
            )
    return said
