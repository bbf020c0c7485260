"""What the agent's error words mean in Trunkline's codes."""

from trunkline_adapters.claude.native import DIAGNOSTIC_PREFIX
from trunkline_agentkit.fields import Obj, items, strings, text, whole
from trunkline_wire.errors import ErrorInfo

_AUTH = frozenset({"authentication_failed", "oauth_org_not_allowed", "authentication_error", "permission_error"})
SIGN_IN = "sign in on the host with `claude` and `/login`, or set ANTHROPIC_API_KEY for the worker"


def api_error(message: Obj, said: str) -> ErrorInfo:
    """The error of an assistant message or result that stands for a failed call of the model's API."""
    kind = text(message, "error") or text(message, "api_error_type")
    status = whole(message, "api_error_status")
    details = {
        "kind": kind,
        "status": status,
        "type": text(message, "api_error_type"),
        "terminal_reason": text(message, "terminal_reason"),
    }
    auth = kind in _AUTH or status == 401
    message_text = f"{said.rstrip('. ')} ({SIGN_IN})" if auth else said
    return ErrorInfo(
        code="agent_auth" if auth else "agent_failed",
        message=message_text,
        details={key: value for key, value in details.items() if value is not None},
    )


def result_error(result: Obj, told: ErrorInfo | None) -> ErrorInfo:
    """The error of a result: what a message of the turn has `told` in detail, else its `errors` or its text.

    Diagnostics that are not for people are left out.
    """
    said = [line for line in strings(items(result, "errors")) if not line.startswith(DIAGNOSTIC_PREFIX)]
    if told is not None and not said:
        return told
    return api_error(result, "; ".join(said) or text(result, "result") or "the turn ended with an error")
