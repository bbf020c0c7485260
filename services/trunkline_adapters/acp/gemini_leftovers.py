"""Files that Gemini CLI leaves when it takes a session up: with a head, and nothing that was said.

The next Gemini CLI that starts in the project takes such a file for broken, and deletes it with all other files of the same
session: the whole history. Measured on 0.61.0. So they are removed before it starts and as soon as it has taken a session up.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from trunkline_adapters.acp.gemini_history import chats, is_said, session_in
from trunkline_agentkit.fields import Obj, as_obj, obj, objects, text
from trunkline_agentkit.history import lines_of
from trunkline_wire import decode_json


def remove(source: Mapping[str, str], native: str) -> None:
    """Removes those of a session, of the user whose environment `source` is, where another of its files has something. Blocking."""
    found: dict[bool, list[Path]] = {True: [], False: []}
    for directory in chats(source):
        for path in directory.glob(f"session-*-{native[:8]}.jsonl"):
            with contextlib.suppress(OSError, ValueError):
                if session_in(path) == native:
                    found[_says_something(path)].append(path)
    for path in found[False] if found[True] else []:
        with contextlib.suppress(OSError):
            path.unlink()


def _says_something(path: Path) -> bool:
    """Raises OSError, and ValueError for what can't be read: it is not ours to judge."""
    for line in lines_of(path):
        record = as_obj(decode_json(line.raw))
        messages = objects(obj(record, "$set") or record, "messages")
        if any(_is_said(message) for message in [*messages, record]):
            return True
    return False


def _is_said(message: Obj) -> bool:
    kind = text(message, "type")
    return kind is not None and (kind != "user" or is_said(message))
