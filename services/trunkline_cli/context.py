"""What every command needs: the gateway, and ids that people may shorten."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from trunkline_cli.discovery import find_gateway, home_directory
from trunkline_client import Address, Link
from trunkline_fold.answering import Ask, decode_ask
from trunkline_wire import Answer, TrunklineError
from trunkline_wire.ids import is_id, new_command_id

if TYPE_CHECKING:
    from trunkline_client.results import Answered, SessionState

T = TypeVar("T")

LAST: Final = "last"
PAGE: Final = 200


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine. Returns its result, which is the process's exit code if it is an int."""
    return asyncio.run(coroutine)


def open_link(home: Path | None, *, patience: float = 120.0) -> Link:
    """The link to the gateway of `home`, looked up anew for each connection."""

    def find() -> Address:
        return find_gateway(home_directory(home))

    return Link(find, name="cli", patience=patience)


async def list_sessions(link: Link) -> list["SessionState"]:
    """The states of all sessions, newest first."""
    found: list[SessionState] = []
    while True:
        page = await link.session.list(limit=PAGE, offset=len(found))
        found += page["sessions"]
        if not page.get("has_more") or not page["sessions"]:
            # Session ids begin with the time.
            return sorted(found, key=_session_of, reverse=True)


async def find_session(link: Link, reference: str) -> str:
    """The id that `reference` means: a whole id, a unique beginning (with or without `ses_`), or `last`.

    Raises `unknown_session`, `bad_id` where several begin so.
    """
    if is_id(reference, "ses"):
        return reference
    sessions = [_session_of(state) for state in await list_sessions(link)]
    if reference == LAST:
        if not sessions:
            raise TrunklineError("unknown_session", "there is no session yet: start one with `trunkline run ADAPTER`")
        return sessions[0]
    return unique(reference, "ses", sessions, "unknown_session", "see `trunkline ls`")


async def find_ask(link: Link, reference: str | None, session: str | None = None) -> Ask:
    """The open ask that is meant: by id or its beginning, `last` for the newest, or the only one of a session (or of all).
    A whole id may also be that of an ended one: whoever answers it learns from the gateway what became of it.

    Raises `unknown_ask`, `bad_id` where several fit.
    """
    asks = await list_asks(link, session)
    if reference == LAST and asks:
        return asks[-1]
    if reference is not None and reference != LAST:
        ids = [ask.ask for ask in asks]
        if is_id(reference, "ask") and reference not in ids:
            ended = [ask for ask in await list_asks(link, session, status="all") if ask.ask == reference]
            if ended:
                return ended[0]
            raise TrunklineError("unknown_ask", f"{reference!r} is not known: see `trunkline asks`", ask=reference)
        wanted = unique(reference, "ask", ids, "unknown_ask", "see `trunkline asks`")
        return next(ask for ask in asks if ask.ask == wanted)
    if not asks:
        raise TrunklineError("unknown_ask", "nothing waits for a decision")
    if len(asks) > 1:
        some = ", ".join(brief(ask.ask) for ask in asks[:5])
        raise TrunklineError("bad_id", f"{len(asks)} asks are open ({some}): name one; see `trunkline asks`")
    return asks[0]


async def list_asks(link: Link, session: str | None = None, status: Literal["open", "all"] = "open") -> list[Ask]:
    """The open asks, or all that are kept, oldest first."""
    answer = await link.ask.list(session=session, status=status, limit=500)
    return [decode_ask(value) for value in answer["asks"]]


async def decide(link: Link, ask: str, session: str, choice: dict[str, Any]) -> "Answered":
    """Answers an ask; with this device's signature, where the host was paired."""
    params: dict[str, Any] = {"ask": ask, "session": session, "id": new_command_id(), **choice}
    sealed = (await link.address()).sealed
    if sealed is not None:
        given = await link.ask.nonce()
        answer = msgspec.convert({"time": "", **params}, Answer)
        params["signature"] = sealed.paired.signed(answer, given["time"], given["nonce"])
    return await link.ask.answer(**params)


def unique(reference: str, prefix: str, ids: list[str], code: str, hint: str) -> str:
    """The one of `ids` that begins with `reference`, with or without its prefix. Raises `code` or `bad_id`."""
    begin = reference if reference.startswith(f"{prefix}_") else f"{prefix}_{reference}"
    found = [one for one in ids if one.startswith(begin)]
    if not found:
        raise TrunklineError(code, f"nothing begins with {reference!r}: {hint}")
    if len(found) > 1:
        raise TrunklineError("bad_id", f"{len(found)} ids begin with {reference!r}: type more of it; {hint}")
    return found[0]


def brief(id: str) -> str:
    """An id as tables show it: long enough to be unique for people, who may type it back."""
    return id[:16]


def _session_of(state: "SessionState") -> str:
    return str(state["session"])
