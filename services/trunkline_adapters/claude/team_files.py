"""The files of a team of Claude Code's: what stands in each of them. Pure.

`teams/<team>/config.json`, `teams/<team>/inboxes/<member>.json`, `tasks/<team>/<id>.json`, and the members' transcripts,
`projects/<directory>/<lead's session>/subagents/agent-*.jsonl`. Measured with 2.1.332 and 2.1.50, whose fields are fewer.
"""

import hashlib
from typing import Any, Final

import msgspec

from trunkline_adapters.claude.native import SYNTHETIC_MODEL
from trunkline_adapters.claude.usage import message_usage
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text, truth, whole
from trunkline_wire.blocks import Usage
from trunkline_wire.observed import ActivitySeen, MailSeen, SeenMember, TaskSeen, TeamSeen
from trunkline_wire.team import TeamTask

LONGEST: Final = 128 * 1024
"""Characters that are kept of one text."""

_NO_PANE: Final = frozenset({"", "leader", "in-process"})
_STATES: Final = {name: name for name in ("pending", "in_progress", "completed", "deleted")}


class Lead(msgspec.Struct, frozen=True):
    """Who leads a team: its own name for its session, and its process where the file says."""

    native_session: str | None
    pid: int | None


def lead_of(config: Obj) -> Lead:
    return Lead(text(config, "leadSessionId"), whole(obj(config, "leadProcess"), "pid"))


def team(name: str, config: Obj) -> TeamSeen:
    """`name` is that of its directory, which its tasks have too."""
    return TeamSeen(
        team=name,
        description=_short(text(config, "description")),
        lead=text(config, "leadAgentId"),
        members=[_member(one) for one in objects(config, "members") if text(one, "name")],
    )


def _member(one: Obj) -> SeenMember:
    pane = text(one, "tmuxPaneId")
    return SeenMember(
        name=text(one, "name") or "",
        agent_id=text(one, "agentId"),
        type=text(one, "agentType"),
        model=text(one, "model"),
        colour=text(one, "color"),
        pane=None if pane in _NO_PANE else pane,
        active=truth(one, "isActive") if "isActive" in one else None,
        native_session=text(one, "sessionId"),
    )


def task(name: str, task: Obj) -> TaskSeen | None:
    """None for what is no task."""
    id = text(task, "id")
    if id is None:
        return None
    seen = TeamTask(
        id=id,
        subject=_short(text(task, "subject")),
        description=_short(text(task, "description")),
        status=_STATES.get(text(task, "status") or ""),  # pyright: ignore[reportArgumentType]  # they are the same words
        owner=text(task, "owner"),
        active_form=_short(text(task, "activeForm")),
        blocks=strings(items(task, "blocks")),
        blocked_by=strings(items(task, "blockedBy")),
    )
    return TaskSeen(list=name, task=seen)


class Letter(msgspec.Struct, frozen=True):
    """One message of an inbox. `key` is its own in that inbox."""

    key: str
    data: MailSeen


def mail(name: str, to: str, inbox: Any) -> list[Letter]:
    """What stands in the inbox of a team's member; [] for what is none."""
    found: list[Letter] = []
    for one in objects({"inbox": inbox}, "inbox"):
        sender, said = text(one, "from"), text(one, "text")
        if sender is None or said is None:
            continue
        message, sent = text(one, "msg_id"), text(one, "timestamp")
        key = message or hashlib.sha256("\x00".join((sender, sent or "", said)).encode()).hexdigest()[:32]
        data = MailSeen(
            team=name,
            to=to,
            sender=sender,
            text=_short(said) or "",
            summary=_short(text(one, "summary")),
            colour=text(one, "color"),
            message=message,
            sent=sent,
        )
        found.append(Letter(key, data))
    return found


class Transcript:
    """What a member's transcript tells of its work, line by line: each message of the model counts once, as it stands last."""

    def __init__(self, agent: str, name: str | None = None) -> None:
        self._agent = agent
        self._name = name
        self._model: str | None = None
        self._last = Usage()
        """Of the message that may still be told of again: lines of one message follow each other."""
        self._id: str | None = None
        self._known: set[str] = set()
        self._sum = Usage()

    def feed(self, line: Obj) -> None:
        message = obj(line, "message")
        model = text(message, "model")
        if text(line, "type") != "assistant" or model == SYNTHETIC_MODEL:
            return
        id = text(message, "id") or text(line, "uuid")
        if id is None or (id != self._id and id in self._known):
            return
        if id != self._id:
            self._sum, self._last = _added(self._sum, self._last), Usage()
            self._known.add(id)
        self._id = id
        self._model = model or self._model
        self._last = message_usage(obj(message, "usage")) or self._last

    @property
    def seen(self) -> ActivitySeen | None:
        """None as long as the model has said nothing."""
        if not self._known:
            return None
        usage, messages = _added(self._sum, self._last), len(self._known)
        return ActivitySeen(
            agent_id=self._agent, name=self._name, model=self._model, state="active", messages=messages, usage=usage
        )


def _added(one: Usage, other: Usage) -> Usage:
    reasoning = [part for part in (one.reasoning, other.reasoning) if part is not None]
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_write=one.cache_write + other.cache_write,
        cache_read=one.cache_read + other.cache_read,
        reasoning=sum(reasoning) if reasoning else None,
    )


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text) - LONGEST} more characters)"
