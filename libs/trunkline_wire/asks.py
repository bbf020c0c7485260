"""Payloads about asks: what an agent wants decided, and how it ends."""

from typing import ClassVar, Literal

import msgspec

from trunkline_wire._base import Data
from trunkline_wire.blocks import Json, Text, ToolKind
from trunkline_wire.errors import ErrorInfo

Behaviour = Literal["allow", "deny", "answered"]


class AskOption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always", "other"] = "other"


class PermissionRequested(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "permission.requested"
    ask: str
    name: str
    incarnation: str
    kind: ToolKind = "other"
    title: str | None = None
    input: Json = None
    options: list[AskOption] = []
    suggestions: Json = None
    description: str | None = None
    reason: str | None = None
    tool: str | None = None
    """Item id of the tool call."""


class QuestionOption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    label: str
    description: str | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`id` is what the answer is keyed by (the text, where the agent has no id of its own)."""

    id: str
    text: str
    header: str | None = None
    options: list[QuestionOption] = []
    multiple: bool = False
    free_text: bool = True


class QuestionAsked(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "question.asked"
    ask: str
    incarnation: str
    questions: list[Question] = []
    message: str | None = None
    schema: Json = None
    tool: str | None = None


class PlanProposed(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "plan.proposed"
    ask: str
    incarnation: str
    plan: Text
    file: str | None = None
    options: list[AskOption] = []
    tool: str | None = None


class Signature(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A registered device's word for an answer: `mac` is `signing.answer_mac`, 64 hex digits; `nonce` 16 bytes as hex."""

    device: str
    time: str
    nonce: str
    mac: str


class SessionRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person allowed once and for all in a session: a tool, and of commands those that match one of the globs."""

    rule: str
    """The name that decisions by this rule carry."""
    tool: str
    command: list[str] = []


class AskWithdrawn(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "ask.withdrawn"
    ask: str
    why: Literal["cancelled", "answered_elsewhere", "agent_died", "interrupted"]


class AskDelivered(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "ask.delivered"
    ask: str


class AskRouted(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "ask.routed"
    ask: str
    policy: str
    rule: str | None = None
    expires_at: str | None = None
    on_expiry: Literal["allow", "deny"] = "deny"
    quorum: int = 1
    role: str | None = None
    """The lowest role that may answer, None for whoever may answer at all."""
    signed: bool = False
    """Whether an answer needs a registered device's signature."""


class AskVoted(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "ask.voted"
    ask: str
    answer: str
    by: str
    behaviour: Behaviour
    signature: Signature | None = None


class AnswerRejected(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "answer.rejected"
    ask: str
    answer: str
    """Id of the answer that was refused."""
    error: ErrorInfo


class AskDecided(Data, frozen=True, kw_only=True):
    """The decision. `by` is a person's actor name or `policy`; `rule` names the rule that decided.

    `remembers` is a rule that it makes for the session: the agent is told of this once alone, and what the rule covers
    is allowed without asking until the rule is revoked.
    """

    TYPE: ClassVar[str] = "ask.decided"
    ask: str
    behaviour: Behaviour
    by: str
    answer: str | None = None
    rule: str | None = None
    option: str | None = None
    updated_input: Json = None
    rule_updates: Json = None
    answers: dict[str, Json] | None = None
    message: str | None = None
    interrupt: bool = False
    signature: Signature | None = None
    remembers: SessionRule | None = None


class AskRevoked(Data, frozen=True, kw_only=True):
    """The rule that this ask's decision made for the session no longer holds."""

    TYPE: ClassVar[str] = "ask.revoked"
    ask: str
    rule: str
    answer: str
    by: str


class AskExpired(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "ask.expired"
    ask: str
    behaviour: Literal["allow", "deny"] = "deny"
