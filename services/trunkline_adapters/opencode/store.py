"""What a program keeps of its sessions, asked of a server of its own that runs as long as it is asked. Blocking.

The store is the program's own, and changes with it: its server says in a public form what is in it.
"""

import asyncio
import http
import http.client
import json
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trunkline_adapters.opencode import launch
from trunkline_adapters.opencode.history import CALL
from trunkline_adapters.opencode.profiles import Profile
from trunkline_adapters.opencode.server import LISTENS, START_DEADLINE, free_port, new_password
from trunkline_adapters.opencode.tools import child_of
from trunkline_agentkit.death import Leash, holder_environment
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text
from trunkline_agentkit.history import HistoryFile, Line
from trunkline_wire import TrunklineError, decode_json, encode

_DEADLINE: Final = 120.0
"""Seconds for one answer: the first one of a directory takes long on a busy machine."""
_IDLE: Final = 60.0
"""Seconds after its last answer that a server is kept for the next question."""
_PAGE: Final = 100
_DEPTH: Final = 8
"""How deep sub-agents may start sub-agents."""


def directory(profile: Profile, source: Mapping[str, str]) -> Path:
    """Where the program keeps its data."""
    data = source.get("XDG_DATA_HOME") or Path(source.get("HOME") or "~").expanduser() / ".local" / "share"
    return Path(data, profile.command[0])


class Store:
    """Starts the server at the first question. `close` ends it, and so does a minute without a question, and the end of this
    process, whatever it is.
    """

    def __init__(self, path: str, profile: Profile, environment: Mapping[str, str], data: Path) -> None:
        self._path = path
        self._profile = profile
        self._environment = environment
        self._data = data
        self._lock = threading.Lock()
        self._leash: Leash | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = 0
        """Questions that wait for their answers."""
        self._idle: threading.Timer | None = None
        self._url = ""
        self._headers: dict[str, str] = {}

    def sessions(self, agent: str) -> list[HistoryFile]:
        """All sessions but sub-agents', the oldest first. Raises TrunklineError."""
        found: list[HistoryFile] = []
        cursor = ""
        while True:
            page, after = self._get(f"/experimental/session?roots=true&archived=true&limit={_PAGE}{cursor}")
            sessions = [as_obj(one) for one in items({"page": page}, "page")]
            found += [
                HistoryFile(native=id, path=self._data, agent=agent)
                for one in sessions
                if (id := text(one, "id")) is not None and text(one, "parentID") is None
            ]
            if not after or not sessions:
                return sorted(found, key=lambda file: file.native, reverse=True)
            cursor = f"&cursor={urllib.parse.quote(after)}"

    def lines(self, native: str) -> Iterator[Line]:
        """A session and its messages, each behind those of the sub-agent that its call ran. Raises TrunklineError."""
        session, _ = self._get(f"/session/{native}")
        yield Line(1, encode({"session": session}))
        yield from self._messages(native, {}, _DEPTH)

    def _messages(self, native: str, fields: Mapping[str, str], depth: int) -> Iterator[Line]:
        """Lines are named by their messages' ids: what is taken back and said anew has others."""
        messages, _ = self._get(f"/session/{native}/message")
        for number, message in enumerate(objects({"messages": messages}, "messages"), 1):
            for part in objects(message, "parts") if depth else []:
                if (child := child_of(part)) is not None:
                    yield from self._of_child(child, part, depth - 1)
            id = text(obj(message, "info"), "id")
            yield Line(1 if id else number, encode(message), id or native, fields)

    def _of_child(self, native: str, part: Obj, depth: int) -> Iterator[Line]:
        try:
            yield from self._messages(native, {CALL: _call(part)}, depth)
        except TrunklineError as error:
            if error.code != "history_lost":  # it was deleted
                raise

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._leash is not None:
            self._leash.let_go()
        if self._process is not None:
            self._process.wait()
        self._idle = self._leash = self._process = None

    def _end_idle(self) -> None:
        with self._lock:
            if not self._asking:
                self._end()

    def _get(self, path: str) -> tuple[Any, str | None]:
        """An answer's body, and where the next page begins."""
        with self._lock:
            self._asking += 1
        try:
            with self._lock:
                if self._process is None:
                    self._start()
            return self._ask(path)
        finally:
            with self._lock:
                self._asking -= 1
                if self._idle is not None:
                    self._idle.cancel()
                self._idle = threading.Timer(_IDLE, self._end_idle)
                self._idle.daemon = True
                self._idle.start()

    def _ask(self, path: str) -> tuple[Any, str | None]:
        request = urllib.request.Request(f"{self._url}{path}", headers=self._headers)  # noqa: S310  # http to loopback
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_DEADLINE) as answer:
                if "json" not in answer.headers.get("content-type", ""):
                    raise TrunklineError("agent_failed", f"{self._profile.title} does not know {path!r}: update it")
                return decode_json(answer.read()), answer.headers.get("x-next-cursor")
        except urllib.error.HTTPError as error:
            code = "history_lost" if error.code == http.HTTPStatus.NOT_FOUND else "agent_failed"
            raise TrunklineError(code, f"{self._profile.title} answers {path!r} with {error.code}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise TrunklineError("agent_failed", f"{self._profile.title} does not answer {path!r}: {error}") from error

    def _start(self) -> None:
        password = new_password()
        secret = {
            self._profile.password_variable: password,
            self._profile.user_variable: self._profile.user,
        }
        argv = [self._path, "serve", "--hostname", "127.0.0.1", "--port", str(free_port())]
        self._headers = launch.authorization(self._profile.user, password)
        self._leash = Leash()
        self._process = subprocess.Popen(
            self._leash.argv,
            pass_fds=[self._leash.descriptor],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=holder_environment(),
            start_new_session=True,
        )
        asyncio.run(self._leash.give(argv, {**self._environment, **secret}))
        self._leash.open_gate()
        late = threading.Timer(START_DEADLINE, self._leash.let_go)
        late.start()
        try:
            self._url = self._listening(self._process)
        finally:
            late.cancel()

    def _listening(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stdout is not None
        for line in process.stdout:
            if (found := LISTENS.search(line.decode(errors="replace"))) is not None:
                threading.Thread(target=process.stdout.read, daemon=True).start()
                return found[1]
        raise TrunklineError("agent_failed", f"{self._profile.title} did not start a server: run it by hand to see why")


def _call(part: Obj) -> str:
    """What is known of a call before its result."""
    state = {"input": obj(part, "state").get("input"), "status": "running"}
    begun = {key: part.get(key) for key in ("callID", "id", "tool", "type")}
    return json.dumps({**begun, "state": state})
