"""The native protocol as data: the reviewed lists, and what a message is.

Measured on OpenCode 1.18.33 and Kilo 7.7.7. Every field is optional here: versions differ in what they send, and a missing field
may never raise.
"""

from typing import Final

from trunkline_adapters.opencode.profiles import Profile, is_silent
from trunkline_agentkit.fields import Obj, obj, text

EVENTS: Final = "/event"
"""The stream of events that a session follows."""

KNOWN: Final = frozenset(
    {
        "catalog.updated",
        "command.executed",
        "file.edited",
        "file.watcher.updated",
        "global.disposed",
        "installation.update-available",
        "installation.updated",
        "integration.connection.updated",
        "integration.updated",
        "lsp.updated",
        "mcp.browser.open.failed",
        "mcp.tools.changed",
        "message.part.removed",
        "message.removed",
        "models-dev.refreshed",
        "plugin.added",
        "project.directories.updated",
        "project.updated",
        "reference.updated",
        "server.connected",
        "server.instance.disposed",
        "session.diff",
        "session.idle",
        "tui.command.execute",
        "tui.prompt.append",
        "tui.session.select",
        "tui.toast.show",
        "vcs.branch.updated",
    }
)
"""Types of events without a translation: meaningless to a reader, or said better by others (`session.idle` by
`session.status`, `session.diff` by the message that it is about)."""

KNOWN_FAMILIES: Final = (
    "permission.v2.",
    "pty.",
    "question.v2.",
    "session.next.",
    "workspace.",
    "worktree.",
)
"""Likewise, by how they begin: those of the server's second interface, which tells nothing of sessions of the first."""

TRANSLATED: Final = frozenset(
    {
        "message.part.delta",
        "message.part.updated",
        "message.updated",
        "permission.asked",
        "permission.replied",
        "question.asked",
        "question.rejected",
        "question.replied",
        "session.compacted",
        "session.created",
        "session.deleted",
        "session.error",
        "session.status",
        "session.updated",
        "todo.updated",
    }
)
"""Types with a translation, which may say nothing where they repeat what is known or belong to another session."""

PASSING: Final = frozenset({"server.heartbeat", "sync"})
"""Bookkeeping of the stream: `sync` repeats the event before it in the form in which it is stored."""


def is_known(event: str, profile: Profile) -> bool:
    """Whether an event is on a reviewed list of those that are not translated."""
    return event in KNOWN or event.startswith(KNOWN_FAMILIES) or is_silent(event, profile)


def event_of(message: Obj) -> Obj:
    """The event in a message of the stream; some streams wrap it."""
    data = obj(message, "data")
    return obj(data, "payload") or data


def stream_of(message: Obj) -> str | None:
    """The stream that a message came on, without its query."""
    stream = text(message, "sse")
    return None if stream is None else stream.partition("?")[0]


def session_of(event: Obj) -> str | None:
    """The session that an event is about, where it is about one."""
    properties = obj(event, "properties")
    return (
        text(properties, "sessionID")
        or text(obj(properties, "info"), "sessionID")
        or text(obj(properties, "part"), "sessionID")
        or text(obj(properties, "info"), "id")
    )


def kind_of(message: Obj) -> str:
    """A message's kind as drift is counted by: an event's type, of a part with the part's type; of an answer the request."""
    if "sse" in message:
        event = event_of(message)
        kind = text(event, "type")
        if kind is None:
            return "stream/lost" if "lost" in message else "stream/open" if "status" in message else "untyped"
        if kind == "message.part.updated":
            return f"{kind}/{text(obj(obj(event, 'properties'), 'part'), 'type') or 'untyped'}"
        return kind
    if (request := text(message, "http")) is not None:
        return f"answer/{shape_of(request)}"
    return "stdout" if "stdout" in message else "untyped"


def shape_of(request: str) -> str:
    """A request without the ids in its path, and without its query."""
    method, _, path = request.partition(" ")
    parts = path.partition("?")[0].split("/")
    named = ["{id}" if part.startswith(("ses_", "msg_", "prt_", "per_", "que_")) else part for part in parts]
    return f"{method} {'/'.join(named)}"
