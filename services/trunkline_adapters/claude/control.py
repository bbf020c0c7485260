"""Our requests to the CLI and their answers: unique ids, deadlines, never a wait without end."""

import asyncio
import itertools
import uuid
from collections.abc import Callable
from typing import Final

from trunkline_agentkit import LineTransport
from trunkline_agentkit.fields import Obj, obj, text
from trunkline_wire import TrunklineError

DEADLINE: Final = 30.0
"""Seconds for an answer; the first one may wait for the program to load."""

_CODES: Final = {
    "unsupported_request": "unsupported",
    "invalid_mode": "bad_params",
    "bypass_not_launched": "unsupported",
}


class Control:
    """Sends control requests and matches their answers. `sent` is told of every request before it goes out."""

    def __init__(self, process: LineTransport, sent: Callable[[Obj], object]) -> None:
        self._process = process
        self._sent = sent
        self._waiting: dict[str, asyncio.Future[Obj]] = {}
        self._numbers = itertools.count(1)
        # Ids of an earlier process must not be mistaken for ours in a recording of both.
        self._prefix = uuid.uuid4().hex[:12]
        self._ended = False

    async def request(self, request: Obj, *, deadline: float | None = None) -> Obj:
        """The answer's payload ({} where it has none).

        Raises TrunklineError `timeout`, `agent_failed`, or what the CLI's own error code means.
        """
        deadline = DEADLINE if deadline is None else deadline
        subtype = text(request, "subtype") or "unknown"
        request_id = f"{self._prefix}-{next(self._numbers)}-{subtype}"
        message: Obj = {"type": "control_request", "request_id": request_id, "request": request}
        answer = asyncio.get_running_loop().create_future()
        if self._ended:
            raise _ended(subtype)
        self._waiting[request_id] = answer
        try:
            self._sent(message)
            async with asyncio.timeout(deadline):
                await self._process.write_line(message)
                envelope = await answer
        except TimeoutError as error:
            raise TrunklineError(
                "timeout", f"the agent did not answer {subtype!r} within {deadline:g} s; it may still do it"
            ) from error
        finally:
            del self._waiting[request_id]
        # A second `initialize` is an error to older CLIs, that lists all the same what they wait for.
        if text(envelope, "subtype") == "success" or "pending_permission_requests" in envelope:
            return obj(envelope, "response")
        raise _refused(subtype, envelope)

    def settle(self, message: Obj) -> None:
        """A `control_response` of the CLI: hands it to who waits for it."""
        envelope = obj(message, "response")
        answer = self._waiting.get(text(envelope, "request_id") or "")
        if answer is not None and not answer.done():
            answer.set_result(envelope)

    def end(self) -> None:
        """The CLI has ended: nothing will be answered any more."""
        self._ended = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_ended("the request"))


def _ended(what: str) -> TrunklineError:
    return TrunklineError(
        "agent_failed", f"the agent has ended before it answered {what!r}: send a prompt to start it again"
    )


def _refused(subtype: str, envelope: Obj) -> TrunklineError:
    said = text(envelope, "error") or "no reason given"
    native_code = text(envelope, "error_code")
    code = _CODES.get(native_code or "", "agent_failed")
    if said.startswith("Unsupported control request subtype"):
        code = "unsupported"
    details = {"capability": subtype} if code == "unsupported" else {}
    return TrunklineError(code, f"the agent refused {subtype!r}: {said}", native_code=native_code, **details)
