"""What teammates ask by mail: a request in the lead's inbox, which an answer in theirs settles.

CLIs whose team works in the process of a lead that has no terminal ask so, and nobody there shows it. Measured with 2.1.101
(and 2.1.50): the member looks into its inbox twice a second for a `permission_response` of the request's id that is not marked as
read, takes the first, and marks it. An inbox is changed by who holds the directory `<inbox>.lock`; one that has stood untouched for
ten seconds is a dead holder's.
"""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

from trunkline_adapters.claude import team_files
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text
from trunkline_wire import TrunklineError, decode_json, encode, parse_time, timestamp
from trunkline_wire.codec import BROKEN

LEAD: Final = "team-lead"
LARGEST: Final = 8 * 1024 * 1024
MOST_TEAMS: Final = 100

STALE_S: Final = 10.0
WITHIN_S: Final = 15.0
"""Seconds in which the lock has to be had: a dead holder's is taken over in that time."""
_EVERY_S: Final = 0.01
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_-]")


class Mailed(msgspec.Struct, frozen=True):
    """A request of a member. `request` is as the CLI's own of the subtype `can_use_tool`."""

    request_id: str
    team: str
    member: str
    request: Obj
    answered: bool
    """An answer stands in the member's inbox."""


class TeamMail:
    """The mail of a team whose lead is the process `pid`, of a user whose directory of the CLI's is `root`."""

    def __init__(self, root: Path, pid: int) -> None:
        self._root = root
        self._since = _begun(pid)
        self._asked: dict[str, Mailed] = {}
        self._one = asyncio.Lock()

    async def asked(self, native_session: str) -> list[Mailed]:
        """As `requests` says."""
        async with self._one:
            found = await asyncio.to_thread(requests, self._root, native_session, self._since)
            self._asked = {one.request_id: one for one in found}
            return found

    async def answer(self, message: Obj) -> None:
        """A `control_response` to something that was asked. Raises TrunklineError as `answer` does."""
        response = obj(message, "response")
        async with self._one:
            asked = self._asked.get(text(response, "request_id") or "")
            if asked is None:
                raise TrunklineError("unknown_ask", "nobody in the team waits for that any more")
            await asyncio.to_thread(answer, self._root, asked, obj(response, "response"))


def requests(root: Path, native_session: str, since: float) -> list[Mailed]:
    """What the members of the session's teams have asked after `since` (seconds of the epoch). Blocking.

    Raises TrunklineError `agent_failed` where an inbox can't be read now: it is to be tried again.
    """
    found: list[Mailed] = []
    for config in sorted((root / "teams").glob("*/config.json"))[:MOST_TEAMS]:
        told = as_obj(_read(config, {}))
        if team_files.lead_of(told).native_session != native_session:
            continue
        folder = config.parent / "inboxes"
        here = _members(told)
        for sent, member, frame in _frames(_letters(folder / f"{LEAD}.json")):
            id = text(frame, "request_id")
            if text(frame, "type") != "permission_request" or id is None or member not in here or sent < since:
                continue
            answered = _answered(_letters(_inbox(folder, member)), id)
            found.append(Mailed(id, config.parent.name, member, _request(frame, member, config.parent.name), answered))
    return found


def answer(root: Path, asked: Mailed, payload: Obj) -> None:
    """Puts the answer into the member's inbox, unless one stands there. Blocking.

    `payload` is that of a `control_response`. Raises TrunklineError `unknown_ask` where the member has left,
    `agent_failed` where its inbox can't be written.
    """
    folder = root / "teams" / asked.team
    inbox = _inbox(folder / "inboxes", asked.member)
    try:
        with _locked(inbox):
            if asked.member not in _members(as_obj(_read(folder / "config.json", {}))):
                raise FileNotFoundError
            letters = _letters(inbox)
            if not _answered(letters, asked.request_id):
                _replace(inbox, [*letters, _letter(response(asked.request_id, payload))])
    except FileNotFoundError as error:
        raise TrunklineError("unknown_ask", f"the member {asked.member!r} has left its team") from error
    except OSError as error:
        raise _unwritable(inbox, error.strerror or str(error)) from error


def response(request_id: str, payload: Obj) -> Obj:
    """The answer in the words that teammates know."""
    if text(payload, "behavior") != "allow":
        said = text(payload, "message") or "Permission denied"
        return {"type": "permission_response", "request_id": request_id, "subtype": "error", "error": said}
    body: Obj = {"updated_input": obj(payload, "updatedInput")}
    if updates := items(payload, "updatedPermissions"):
        body["permission_updates"] = updates
    return {"type": "permission_response", "request_id": request_id, "subtype": "success", "response": body}


def _begun(pid: int) -> float:
    """When a process began, in seconds of the epoch."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return time.time()


def _members(config: Obj) -> set[str | None]:
    return {text(one, "name") for one in objects(config, "members")}


def _request(frame: Obj, member: str, team: str) -> Obj:
    told = {
        name: frame[name] for name in ("tool_name", "input", "description", "permission_suggestions") if name in frame
    }
    return {"subtype": "can_use_tool", "agent_id": f"{member}@{team}", **told}


def _letter(frame: Obj) -> Obj:
    return {"from": LEAD, "text": encode(frame).decode(), "timestamp": timestamp(), "read": False}


def _frames(letters: list[Any]) -> Iterator[tuple[float, str, Obj]]:
    """Those that are words of the CLI's own protocol: when they were sent, by whom."""
    for one in letters:
        letter = as_obj(one)
        sender, said = text(letter, "from"), text(letter, "text") or ""
        if sender is None or not said.startswith("{"):
            continue
        with contextlib.suppress(TrunklineError, ValueError, OverflowError, *BROKEN):
            sent = parse_time(text(letter, "timestamp") or "").timestamp()
            yield sent, sender, as_obj(decode_json(said))


def _answered(letters: list[Any], request_id: str) -> bool:
    return any(
        text(frame, "type") == "permission_response" and text(frame, "request_id") == request_id
        for _, _, frame in _frames(letters)
    )


def _inbox(folder: Path, member: str) -> Path:
    return folder / f"{_UNSAFE.sub('-', member)}.json"


def _letters(inbox: Path) -> list[Any]:
    """What stands in an inbox. Raises TrunklineError `agent_failed`."""
    found = _read(inbox, [])
    if not isinstance(found, list):
        raise _unwritable(inbox, "it holds no list")
    return found


def _read(file: Path, missing: Any) -> Any:
    """The CLI writes in place: what is no JSON now may be some in a moment."""
    for _ in range(10):
        try:
            if file.stat().st_size > LARGEST:
                raise _unwritable(file, f"it is larger than {LARGEST} bytes")
            return decode_json(file.read_bytes())
        except FileNotFoundError:
            return missing
        except OSError as error:
            raise _unwritable(file, error.strerror or str(error)) from error
        except BROKEN:
            time.sleep(_EVERY_S)
    raise _unwritable(file, "it holds no JSON")


def _replace(inbox: Path, letters: list[Any]) -> None:
    """In one step: the member reads without the lock."""
    beside = inbox.with_name(f".{inbox.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(letters), indent=2))
        beside.replace(inbox)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(inbox: Path) -> Generator[None]:
    lock = inbox.with_name(f"{inbox.name}.lock")
    until = time.monotonic() + WITHIN_S
    while not _made(lock):
        if time.monotonic() > until:
            raise _unwritable(inbox, f"another holds {lock.name!r}")
        time.sleep(_EVERY_S)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.rmdir()


def _made(lock: Path) -> bool:
    try:
        lock.mkdir()
    except FileExistsError:
        with contextlib.suppress(OSError):
            if time.time() - lock.stat().st_mtime > STALE_S:
                lock.rmdir()
        return False
    return True


def _unwritable(file: Path, why: str) -> TrunklineError:
    return TrunklineError("agent_failed", f"{file.name!r} of the team can't be changed ({why}): ask the lead to answer")
