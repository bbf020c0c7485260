"""An event in one line, for lists of events."""

import fnmatch
from collections.abc import Sequence

from trunkline_cli.output import short
from trunkline_wire import Event
from trunkline_wire.events import UnknownData

_LEFT_OUT = frozenset({"capabilities", "tools", "models", "modes", "commands", "agents", "mcp_servers", "options"})


def matches(type_: str, patterns: Sequence[str]) -> bool:
    """Whether a type fits one of the patterns (`tool.*`, `session.*`); every type fits none at all."""
    return not patterns or any(fnmatch.fnmatchcase(type_, pattern) for pattern in patterns)


def event_line(event: Event, *, with_session: bool = False) -> str:
    """seq, time, session, type and the payload's fields, as much as a line takes."""
    import msgspec

    seq = "" if event.seq is None else str(event.seq)
    if isinstance(event.data, UnknownData):
        fields: dict[str, object] = {"value": event.data.value}
    else:
        fields = msgspec.to_builtins(event.data)
    about = " ".join(f"{name}={_brief(value)}" for name, value in fields.items() if name not in _LEFT_OUT)
    session = f"{event.session[:16]}  " if with_session else ""
    return f"{seq:>6}  {event.time[11:23]}  {session}{event.type:<22} {short(about, 160)}".rstrip()


def _brief(value: object) -> str:
    return short(value if isinstance(value, str) else str(value), 80)
