"""What OpenCode's errors mean in Trunkline's codes, and what to do about them."""

from typing import Any, Final

from trunkline_agentkit import HttpResponse
from trunkline_agentkit.fields import Obj, as_obj, obj, text, whole
from trunkline_wire import TrunklineError
from trunkline_wire.errors import ErrorInfo

ABORTED: Final = "MessageAbortedError"
_REFUSED: Final = "ContentFilterError"
_AUTH: Final = "ProviderAuthError"
_HINTS: Final = {
    "ContextOverflowError": "the conversation is too long for the model: compact it, or begin a new session",
    "MessageOutputLengthError": "the answer was longer than the model may write: ask for less at once",
}


def name_of(error: Obj) -> str | None:
    """The kind of an error in OpenCode's words: `MessageAbortedError`."""
    return text(error, "name") or text(error, "_tag")


def is_refusal(error: Obj) -> bool:
    return name_of(error) == _REFUSED


def error_info(error: Obj, login: str = "") -> ErrorInfo:
    """An error of a message, or of the session: `agent_auth` where a provider wants a key, else `agent_failed`."""
    name, data = name_of(error), obj(error, "data")
    said = text(data, "message") or text(error, "message") or name or "OpenCode reports an error without a reason"
    status = whole(data, "statusCode")
    auth = name == _AUTH or status == 401
    hint = f"sign in with `{login}`" if auth and login else _HINTS.get(name or "")
    details: dict[str, Any] = {"kind": name, "status": status, "provider": text(data, "providerID")}
    return ErrorInfo(
        code="agent_auth" if auth else "agent_failed",
        message=f"{said.rstrip('. ')} ({hint})" if hint else said,
        details={key: value for key, value in details.items() if value is not None},
    )


def refusal(request: str, answer: HttpResponse) -> TrunklineError:
    """Why the server refused a request of ours."""
    body = as_obj(answer.body)
    name = name_of(body)
    said = text(obj(body, "data"), "message") or text(body, "message") or text(body, "error")
    details: dict[str, Any] = {"status": answer.status, "kind": name}
    match answer.status:
        case 401 | 403:
            return TrunklineError(
                "agent_auth", "the server wants its password: name the file that holds it (`password_file`)", **details
            )
        case 404 if name in {"PermissionNotFoundError", "QuestionNotFoundError"}:
            return TrunklineError("unknown_ask", "the agent does not wait for this answer any more", **details)
        case 404:
            code = "history_lost" if "/session" in request else "bad_params"
            return TrunklineError(code, said or f"the server knows nothing of {request!r}", **details)
        case 400 | 422:
            return TrunklineError("bad_params", said or f"the server refused {request!r}", **details)
        case 409:
            return TrunklineError("stale_target", said or "the session is busy", **details)
        case _:
            reason = said or "it says no reason"
            return TrunklineError("agent_failed", f"the server failed at {request!r}: {reason}", **details)
