"""Every error code of Trunkline: the code is API, the text is not."""

from http import HTTPStatus
from typing import Any, Final

import msgspec


class ErrorCode(msgspec.Struct, frozen=True):
    """What a code means, and the HTTP status that carries it."""

    status: HTTPStatus
    meaning: str


_S = HTTPStatus

ERRORS: Final[dict[str, ErrorCode]] = {
    # the request
    "bad_frame": ErrorCode(_S.BAD_REQUEST, "The frame is not JSON of the gateway's protocol."),
    "bad_id": ErrorCode(_S.BAD_REQUEST, "An id or name has the wrong form."),
    "bad_params": ErrorCode(_S.BAD_REQUEST, "A parameter is missing, unknown or of the wrong type."),
    "bad_cursor": ErrorCode(_S.BAD_REQUEST, "The cursor was not issued by this log, or was altered."),
    "bad_event": ErrorCode(_S.UNPROCESSABLE_ENTITY, "A stored message is not an event of a known schema."),
    "unknown_method": ErrorCode(_S.NOT_FOUND, "The gateway has no such method."),
    "too_large": ErrorCode(_S.REQUEST_ENTITY_TOO_LARGE, "The message is over the size limit."),
    "rate_limited": ErrorCode(_S.TOO_MANY_REQUESTS, "Too many messages: slow down and try again."),
    # who asks
    "unauthorized": ErrorCode(_S.UNAUTHORIZED, "No token, or one that is unknown, expired or revoked."),
    "forbidden": ErrorCode(_S.FORBIDDEN, "The role does not allow it."),
    "bad_origin": ErrorCode(_S.FORBIDDEN, "The page's origin or the Host header is not allowed."),
    "agent_forbidden": ErrorCode(_S.FORBIDDEN, "An agent may not approve its own requests."),
    # sessions and commands
    "unknown_session": ErrorCode(_S.NOT_FOUND, "There is no session of this id."),
    "unknown_workspace": ErrorCode(_S.NOT_FOUND, "No session of this workspace is known."),
    "session_exists": ErrorCode(_S.CONFLICT, "A session of this id exists already."),
    "session_closed": ErrorCode(_S.CONFLICT, "The session is closed; `resume` reopens it."),
    "no_worker": ErrorCode(_S.SERVICE_UNAVAILABLE, "No worker took the session within 30 s."),
    "unknown_team": ErrorCode(_S.NOT_FOUND, "No team of this name is seen, or more than one."),
    "unknown_adapter": ErrorCode(_S.NOT_FOUND, "No adapter of this name is installed."),
    "agent_not_found": ErrorCode(_S.FAILED_DEPENDENCY, "The agent's program is not installed."),
    "agent_failed": ErrorCode(_S.BAD_GATEWAY, "The agent's program ended or answered with an error."),
    "agent_auth": ErrorCode(_S.FAILED_DEPENDENCY, "The agent is not signed in."),
    "history_lost": ErrorCode(_S.GONE, "The agent no longer has the conversation that was to be taken up."),
    "bad_directory": ErrorCode(_S.BAD_REQUEST, "The directory does not exist or can't be entered."),
    "unsupported": ErrorCode(_S.NOT_IMPLEMENTED, "The session's agent lacks the capability."),
    "stale_target": ErrorCode(_S.CONFLICT, "The named turn or ask is no longer the open one."),
    "busy": ErrorCode(_S.CONFLICT, "A turn runs or an ask is open, which has to end first."),
    "expired": ErrorCode(_S.GONE, "The command waited longer than it may."),
    "outcome_unknown": ErrorCode(
        _S.CONFLICT, "The command was accepted, and its owner died before its effect was seen."
    ),
    "timeout": ErrorCode(_S.GATEWAY_TIMEOUT, "No answer in time; the request may still take effect."),
    "crash_loop": ErrorCode(_S.BAD_GATEWAY, "The agent ended three times before it was ready."),
    "ownership_flapping": ErrorCode(_S.CONFLICT, "Three workers claimed the session within five minutes."),
    "fenced": ErrorCode(_S.CONFLICT, "Another worker owns the session now."),
    # terminals
    "no_terminal": ErrorCode(_S.NOT_FOUND, "The session has no terminal, or nobody holds it at the moment."),
    "terminal_taken": ErrorCode(_S.CONFLICT, "Somebody else types in the terminal; it can be taken over."),
    # asks
    "unknown_ask": ErrorCode(_S.NOT_FOUND, "There is no ask of this id."),
    "already_decided": ErrorCode(_S.CONFLICT, "Another answer was first."),
    "withdrawn": ErrorCode(_S.GONE, "The agent no longer asks."),
    "bad_answer": ErrorCode(_S.BAD_REQUEST, "The answer does not fit what was asked."),
    "already_voted": ErrorCode(
        _S.CONFLICT, "The same person has allowed it already; somebody else has to allow it too."
    ),
    "signature_required": ErrorCode(_S.FORBIDDEN, "The policy wants the answer signed by a registered device."),
    "bad_signature": ErrorCode(_S.FORBIDDEN, "The signature is not that of the device, or was used before."),
    "unknown_rule": ErrorCode(_S.NOT_FOUND, "The session has no such rule, or it was revoked."),
    # extensions
    "unknown_extension": ErrorCode(_S.NOT_FOUND, "No extension of this name answers."),
    "no_pages": ErrorCode(_S.NOT_FOUND, "The extension has no pages."),
    "extension_failed": ErrorCode(_S.BAD_GATEWAY, "The extension answered with an error, or with no JSON."),
    # from anywhere
    "bad_seal": ErrorCode(_S.BAD_REQUEST, "An encrypted message does not open, or is from another connection."),
    "unpaired": ErrorCode(_S.FORBIDDEN, "The host does not know this device, or no more."),
    "bad_pairing": ErrorCode(_S.FORBIDDEN, "The pairing link is too old, was used before, or was not confirmed."),
    "host_away": ErrorCode(_S.SERVICE_UNAVAILABLE, "The host is not connected to the relay."),
    # the log
    "log_unavailable": ErrorCode(_S.SERVICE_UNAVAILABLE, "The NATS server can't be reached."),
    "log_unwritable": ErrorCode(_S.INSUFFICIENT_STORAGE, "The log takes no writes: its disk may be full."),
    "log_full": ErrorCode(_S.INSUFFICIENT_STORAGE, "The log is near its limit; new turns are refused."),
    "log_regressed": ErrorCode(_S.CONFLICT, "The log went back behind what was acknowledged."),
    "topology_conflict": ErrorCode(_S.CONFLICT, "A stream exists with a setting that can't be changed without loss."),
    "bad_backup": ErrorCode(_S.UNPROCESSABLE_ENTITY, "The directory is no backup, or not as it was written."),
    "blob_missing": ErrorCode(_S.NOT_FOUND, "The content of a large field is not in the store."),
    "degraded": ErrorCode(_S.CONFLICT, "An event of the session can't be folded; its state is frozen."),
    # a program of ours
    "bad_settings": ErrorCode(_S.BAD_REQUEST, "A setting is unknown or has a wrong value."),
    "already_running": ErrorCode(_S.CONFLICT, "Another instance holds the store or the address."),
    "not_running": ErrorCode(_S.SERVICE_UNAVAILABLE, "Trunkline does not run here."),
    "internal": ErrorCode(_S.INTERNAL_SERVER_ERROR, "A fault of Trunkline itself."),
}


class TrunklineError(Exception):
    """An error with a stable code, a text for people and details for programs."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        if code not in ERRORS:
            raise ValueError(f"error code {code!r} is not in trunkline_wire.errors.ERRORS")
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: dict[str, Any] = details

    @property
    def status(self) -> HTTPStatus:
        return ERRORS[self.code].status

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as it stands in events and frames."""

    code: str
    message: str
    details: dict[str, Any] = {}

    @classmethod
    def of(cls, error: TrunklineError) -> "ErrorInfo":
        return cls(code=error.code, message=error.message, details=error.details)
