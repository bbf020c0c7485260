"""Commands to a session, answers to asks, and requests for sessions."""

from typing import Any, ClassVar, Final, Literal

import msgspec

from trunkline_wire._base import Data, tagged_family
from trunkline_wire.asks import Behaviour, Signature
from trunkline_wire.blocks import Block, Json
from trunkline_wire.events import Source
from trunkline_wire.session import SessionOptions, Thinking


class Prompt(Data, frozen=True, kw_only=True):
    """A user message. While a turn runs the agent queues it, or folds it in where `delivery` asks for that and it can."""

    TYPE: ClassVar[str] = "prompt"
    content: list[Block]
    delivery: Literal["auto", "queue", "steer"] = "auto"


class Interrupt(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "interrupt"
    cancel_queued: bool = False


class Steer(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "steer"
    content: list[Block]


class SetModel(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "set_model"
    model: str


class SetMode(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "set_mode"
    mode: str


class SetThinking(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "set_thinking"
    level: Thinking


class RunCommand(Data, frozen=True, kw_only=True):
    """A slash command of the agent, without the slash."""

    TYPE: ClassVar[str] = "run_command"
    name: str
    arguments: str = ""


class Rewind(Data, frozen=True, kw_only=True):
    """Puts files back to the state before a user message (`to`: the item of that message)."""

    TYPE: ClassVar[str] = "rewind"
    to: str
    dry_run: bool = False


class Fork(Data, frozen=True, kw_only=True):
    """A new session with this one's history; the requester mints its id. `at`: only what came before this prompt (the
    command that brought it, or its item).
    """

    TYPE: ClassVar[str] = "fork"
    session: str
    at: str | None = None
    prompt: str | None = None


class Compact(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "compact"
    instructions: str | None = None


class Reset(Data, frozen=True, kw_only=True):
    """Leaves the agent's conversation: the next prompt begins a new one, in the same session. Waits for the turn's end."""

    TYPE: ClassVar[str] = "reset"


class Rename(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "rename"
    title: str


class Archive(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "archive"


class Unarchive(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "unarchive"


class HandOver(Data, frozen=True, kw_only=True):
    """Goes on in the agent's own terminal, or takes the session back from there. Refused as `busy` while a turn runs or an ask
    is open, unless `interrupt` says to end them.
    """

    TYPE: ClassVar[str] = "hand_over"
    to: Literal["structured", "terminal"]
    interrupt: bool = False


class Resume(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "resume"


class Close(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "close"
    reason: str | None = None


class Kill(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "kill"
    reason: str | None = None


class Native(Data, frozen=True, kw_only=True):
    """A request in the agent's own protocol (owner role only)."""

    TYPE: ClassVar[str] = "native"
    method: str
    params: dict[str, Json] = {}


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="verb"):
    """A command. `target` names the turn that an interrupt or steer means; `source` counts only from the gateway."""

    id: str
    session: str
    time: str
    args: Data
    target: str | None = None
    source: Source | None = None

    @property
    def verb(self) -> str:
        return self.args.TYPE


VERBS: Final[dict[str, type[Data]]] = {
    kind.TYPE: kind
    for kind in (
        Prompt,
        Interrupt,
        Steer,
        SetModel,
        SetMode,
        SetThinking,
        RunCommand,
        Rewind,
        Fork,
        Compact,
        Reset,
        Rename,
        Archive,
        Unarchive,
        HandOver,
        Resume,
        Close,
        Kill,
        Native,
    )
}
PROMPT_LIFETIME_S: Final = 24 * 3600.0
CONTROL_LIFETIME_S: Final = 30.0
WAITING_VERBS: Final = frozenset(
    {"prompt", "run_command", "compact", "reset", "fork", "rename", "archive", "unarchive", "resume"}
)
"""Verbs that may wait for an owner as long as a prompt; the others expire after CONTROL_LIFETIME_S."""

COMMAND_KINDS: Final[dict[type[Data], type[Command]]] = tagged_family(
    Command, VERBS.values(), field="args", tag_field="verb"
)


def make_command(args: Data, *, id: str, session: str, time: str, **fields: Any) -> Command:
    return COMMAND_KINDS[type(args)](id=id, session=session, time=time, args=args, **fields)


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer to an ask. Repeating it with the same id gets the same outcome.

    `revoke` takes back the session's rule that the ask's decision made. `source` counts only from the gateway, which has
    checked the signature if it names a device there.
    """

    id: str
    session: str
    ask: str
    behaviour: Behaviour
    time: str
    option: str | None = None
    updated_input: Json = None
    rule_updates: Json = None
    answers: dict[str, Json] | None = None
    message: str | None = None
    interrupt: bool = False
    revoke: bool = False
    signature: Signature | None = None
    source: Source | None = None


class Spawn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to create a session; the requester has minted the session's id."""

    id: str
    session: str
    adapter: str
    cwd: str
    time: str
    host: str = "any"
    agent: str | None = None
    title: str | None = None
    options: SessionOptions = SessionOptions()
    fork_of: str | None = None
    fork_at: str | None = None
    source: Source | None = None


class SystemRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record of the audit, on `trunk.sys.<kind>`."""

    id: str
    kind: str
    time: str
    actor: str
    session: str | None = None
    details: dict[str, Any] = {}


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that a service could not apply, with the error and where the message stands."""

    id: str
    service: str
    time: str
    stream: str
    sequence: int
    session: str | None = None
    code: str
    error: str
