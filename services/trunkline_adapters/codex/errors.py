"""What Codex's error words mean in Trunkline's codes, and what to do about them."""

from typing import Any, Final, Literal

from trunkline_agentkit import Exit
from trunkline_agentkit.fields import Obj, as_obj, text, whole
from trunkline_wire import TrunklineError
from trunkline_wire.errors import ErrorInfo

SIGN_IN: Final = "run `codex login` on the host as the worker's user, or set OPENAI_API_KEY for it and run `codex login --with-api-key`"

_REFUSED: Final = frozenset({"bioPolicy", "cyberPolicy", "misalignmentPolicyViolation"})
_HINTS: Final = {
    "contextWindowExceeded": "the conversation is too long for the model: compact it, or begin a new session",
    "usageLimitExceeded": "the account's limit is used up: wait, or sign in with another one",
}

_REFUSALS: Final = (
    ("no rollout found", "history_lost"),
    ("thread not loaded", "history_lost"),
    ("no active turn", "stale_target"),
    ("expected active turn", "stale_target"),
    ("authentication required", "agent_auth"),
    ("requires experimentalApi", "unsupported"),
    ("unknown variant", "unsupported"),
)
"""Codex answers every refusal with the same number: what is meant stands in its text alone."""


def refusal(method: str, error: TrunklineError) -> TrunklineError:
    """What a refused request means: `error` is that of the JSON-RPC connection, with Codex's text."""
    if error.code != "bad_params":
        return error
    said = error.message
    code = next((code for words, code in _REFUSALS if words in said), "bad_params")
    if code == "unsupported":
        # The text lists every method that there is.
        return TrunklineError(code, f"this Codex does not know {method!r}: update it", capability=method)
    return TrunklineError(code, f"{said} ({SIGN_IN})" if code == "agent_auth" else said, **error.details)


def word_of(error: Obj) -> str | None:
    """The `codexErrorInfo` of a TurnError as one word."""
    info = error.get("codexErrorInfo")
    if isinstance(info, str):
        return info
    return next(iter(as_obj(info)), None)


def outcome_of(error: Obj) -> Literal["error", "refused", "max_budget"]:
    """How a failed turn ended."""
    word = word_of(error)
    if word in _REFUSED:
        return "refused"
    return "max_budget" if word == "sessionBudgetExceeded" else "error"


def error_info(error: Obj) -> ErrorInfo:
    """A TurnError as an error of ours: `agent_auth` where Codex is not signed in, else `agent_failed`."""
    word = word_of(error)
    status = _status(error)
    said = text(error, "message") or "Codex reports an error without a reason"
    auth = word == "unauthorized" or status == 401
    hint = SIGN_IN if auth else _HINTS.get(word or "")
    details: dict[str, Any] = {"kind": word, "status": status, "more": text(error, "additionalDetails")}
    return ErrorInfo(
        code="agent_auth" if auth else "agent_failed",
        message=f"{said.rstrip('. ')} ({hint})" if hint else said,
        details={name: value for name, value in details.items() if value is not None},
    )


def _status(error: Obj) -> int | None:
    """The HTTP status that some of Codex's errors carry."""
    info = as_obj(error.get("codexErrorInfo"))
    return next((status for value in info.values() if (status := whole(as_obj(value), "httpStatusCode"))), None)


def ended(end: Exit, error: TrunklineError) -> TrunklineError:
    """Why a server could not be used: its own last words, where it ended."""
    said = end.stderr_tail.strip()
    if error.code != "agent_failed":
        return error
    if any(word in said for word in ("codex login", "Not logged in", "not logged in")):
        return TrunklineError("agent_auth", f"Codex is not signed in: {SIGN_IN}", stderr=said[-2000:])
    return end.at_start("Codex", error.message)
