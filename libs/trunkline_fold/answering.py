"""Asks for programs that show them: as the gateway sends them, what they are about, and the parameters that answer them. Pure."""

from typing import Any, cast

import msgspec

from trunkline_fold.asks import Ask
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskOption, PermissionRequested, PlanProposed, QuestionAsked

Asked = PermissionRequested | QuestionAsked | PlanProposed


def decode_ask(value: Any) -> Ask:
    """An ask of the gateway. Raises `bad_event` for a form that this version can't read."""
    try:
        return msgspec.convert(value, cast("type[Ask]", Ask))
    except msgspec.ValidationError as error:
        raise TrunklineError("bad_event", f"the gateway sent an ask that this version can't read: {error}") from error


def choose(option: AskOption) -> dict[str, Any]:
    """The parameters that pick an option: its kind says whether that allows or denies."""
    behaviour = (
        "deny" if option.kind.startswith("reject") else "allow" if option.kind.startswith("allow") else "answered"
    )
    return {"behaviour": behaviour, "option": option.id}


def input_line(value: object) -> str:
    """What a tool call is about: the input's command, path or pattern, else all of it."""
    if isinstance(value, dict):
        for name in ("command", "file_path", "path", "pattern", "url", "query", "description"):
            found: object = value.get(name)
            if isinstance(found, str):
                return found
            if isinstance(found, list):
                return " ".join(map(str, found))
    if not value:
        return ""
    return value if isinstance(value, str) else str(value)
