"""The native protocol as data: the reviewed lists, and tolerant access.

Measured on Codex 0.171.0. Every field is optional here: versions differ in what they send, and a missing field may never raise.
"""

from collections.abc import Iterable
from typing import Any, Final, cast

Obj = dict[str, Any]
"""One JSON object of the native protocol."""

REALTIME: Final = "thread/realtime/"
"""Notifications of voice conversations, which no session of ours begins."""

KNOWN: Final = frozenset(
    {
        "account/chatgptAuthTokens/refresh",
        "account/gatewayOAuth/changed",
        "app/list/updated",
        "applyPatchApproval",
        "attestation/generate",
        "autoApprovalReview/strictReviewRequired",
        "command/exec/outputDelta",
        "deprecationNotice",
        "execCommandApproval",
        "externalAgentConfig/import/completed",
        "externalAgentConfig/import/progress",
        "fs/changed",
        "fuzzyFileSearch/sessionCompleted",
        "fuzzyFileSearch/sessionUpdated",
        "item/commandExecution/terminalInteraction",
        "item/fileChange/patchUpdated",
        "mcpServer/event/stream/notification",
        "model/safetyBuffering/updated",
        "model/verification",
        "process/exited",
        "process/outputDelta",
        "project/changed",
        "remoteControl/status/changed",
        "skills/changed",
        "thread/archived",
        "thread/attachment/updated",
        "thread/closed",
        "thread/deleted",
        "thread/environment/connected",
        "thread/goal/cleared",
        "thread/prediction/updated",
        "thread/project/updated",
        "thread/queue/changed",
        "thread/readState/changed",
        "thread/search/partial",
        "thread/section/changed",
        "thread/status/changed",
        "thread/unarchived",
        "turn/moderationMetadata",
        "windows/worldWritableWarning",
        "windowsSandbox/setupCompleted",
    }
)
"""Methods without a translation: meaningless to a reader, or said better by other messages.

`account/chatgptAuthTokens/refresh`, `applyPatchApproval`, `attestation/generate` and `execCommandApproval` are requests that only
clients get which have asked for them; they are refused.
"""

TRANSLATED: Final = frozenset(
    {
        "account/login/completed",
        "account/rateLimits/updated",
        "account/updated",
        "configWarning",
        "error",
        "guardianWarning",
        "hook/completed",
        "hook/started",
        "item/agentMessage/delta",
        "item/autoApprovalReview/completed",
        "item/autoApprovalReview/started",
        "item/commandExecution/outputDelta",
        "item/commandExecution/requestApproval",
        "item/completed",
        "item/fileChange/outputDelta",
        "item/fileChange/requestApproval",
        "item/mcpToolCall/progress",
        "item/permissions/requestApproval",
        "item/plan/delta",
        "item/reasoning/summaryPartAdded",
        "item/reasoning/summaryTextDelta",
        "item/reasoning/textDelta",
        "item/started",
        "item/tool/call",
        "item/tool/requestUserInput",
        "mcpServer/elicitation/request",
        "mcpServer/oauthLogin/completed",
        "mcpServer/startupStatus/updated",
        "model/rerouted",
        "modelProvider/authRecoveryCompleted",
        "modelProvider/authRecoveryStarted",
        "serverRequest/resolved",
        "thread/compacted",
        "thread/environment/disconnected",
        "thread/goal/updated",
        "thread/name/updated",
        "thread/reverted",
        "thread/settings/updated",
        "thread/started",
        "thread/tokenUsage/updated",
        "turn/completed",
        "turn/diff/updated",
        "turn/plan/updated",
        "turn/started",
        "warning",
    }
)
"""Methods with a translation, which may say nothing where they repeat what is known or belong to another thread."""

ASKING: Final = frozenset(
    {
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "item/tool/call",
        "item/tool/requestUserInput",
        "mcpServer/elicitation/request",
    }
)
"""Requests of the server that people, or programs in their place, answer."""

BEGINNING: Final = frozenset({"review/start", "thread/compact/start", "thread/shellCommand", "turn/start"})
"""Requests of ours that begin a turn."""

OPENING: Final = frozenset({"thread/fork", "thread/resume", "thread/start"})
"""Requests of ours whose answer says what the session is."""


def kind_of(message: Obj) -> str:
    """A message's kind as drift is counted by: its method, of an item's start or end with the item's type."""
    method = text(message, "method")
    if method is None:
        return "response" if "id" in message else "untyped"
    if method in {"item/started", "item/completed"}:
        return f"{method}/{text(obj(obj(message, 'params'), 'item'), 'type') or 'untyped'}"
    return method


def as_obj(value: object) -> Obj:
    """`value` if it is an object, else an empty one."""
    return cast("Obj", value) if isinstance(value, dict) else {}


def obj(message: Obj, key: str) -> Obj:
    return as_obj(message.get(key))


def items(message: Obj, key: str) -> list[Any]:
    value = message.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects(message: Obj, key: str) -> list[Obj]:
    return [cast("Obj", value) for value in items(message, key) if isinstance(value, dict)]


def strings(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def text(message: Obj, key: str) -> str | None:
    """A string that is not empty, else None."""
    value = message.get(key)
    return value if isinstance(value, str) and value else None


def whole(message: Obj, key: str) -> int | None:
    """A number as an integer, else None."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e18 else None  # noqa: PLR0124  # NaN is not itself


def truth(message: Obj, key: str) -> bool:
    return message.get(key) is True
