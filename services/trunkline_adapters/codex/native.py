"""The native protocol as data: the reviewed lists, and tolerant access.

Measured on Codex 0.171.0. Every field is optional here: versions differ in what they send, and a missing field may never raise.
"""

from typing import Final

from trunkline_agentkit.fields import Obj, obj, text

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
