"""A session's log as its writers would append it, for tests of folds and readers: no server needed."""

import datetime as dt
from typing import Any, Final

from trunkline_wire import AgentRef, Data, Event, make_event, timestamp
from trunkline_wire.events import is_ask
from trunkline_wire.session import SessionClaimed, SessionCreated
from trunkline_wire.subjects import EVENTS

SESSION: Final = "ses_" + "5e5510" + "0" * 26
HOST: Final = "hst_" + "0" * 32
WORKSPACE: Final = "ws_" + "0" * 32
START: Final = dt.datetime(2026, 11, 27, 21, 0, tzinfo=dt.UTC)


class Log:
    """Appends get the next stream sequence, `seq`, epoch, and a time one second after the last.

    `entries` holds (stream sequence, channel, event), what `check_session` takes.
    """

    def __init__(self, session: str = SESSION) -> None:
        self.session = session
        self.entries: list[tuple[int, str, Event]] = []
        self.epoch = 0
        self.seq = 0
        self.now = START
        self._parts = 0

    @property
    def sequence(self) -> int:
        """The last stream sequence."""
        return self.entries[-1][0] if self.entries else 0

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += dt.timedelta(seconds=seconds)

    def created(self, **fields: Any) -> Event:
        about: dict[str, Any] = {"adapter": "demo", "cwd": "/src/app", "host": HOST, "workspace": WORKSPACE}
        self.epoch += 1
        return self.agent(SessionCreated(**(about | fields)))

    def claimed(self, incarnation: str | None = None, worker: str = "wrk_" + "0" * 32) -> Event:
        self.epoch += 1
        return self.agent(SessionClaimed(worker=worker, host=HOST, incarnation=incarnation))

    def agent(self, data: Data, **fields: Any) -> Event:
        """An event of the session's owner, on the subject that its type belongs to."""
        self.seq += 1
        channel = "agent.ask" if is_ask(data) else "agent.fact"
        about: dict[str, Any] = {"seq": self.seq, "epoch": self.epoch, "agent": AgentRef(adapter="demo")}
        return self._append(channel, data, about | fields)

    def permission(self, data: Data, **fields: Any) -> Event:
        """An event of the permission service, derived from the last message of the log."""
        self._parts += 1
        return self._append("permission", data, {"src": (EVENTS, self.sequence, self._parts)} | fields)

    def team(self, data: Data, **fields: Any) -> Event:
        return self._append("team", data, {"src": (EVENTS, self.sequence, 0)} | fields)

    def _append(self, channel: str, data: Data, fields: dict[str, Any]) -> Event:
        self.wait(1)
        fields = {"session": self.session, "time": timestamp(self.now)} | fields
        event = make_event(data, **fields)
        self.entries.append((self.sequence + 1, channel, event))
        return event
