"""Several processes that are one relay, over core NATS: a host is at one of them, its devices may be at any.

The replica that has a host decides who may come to it. It is asked on a subject of the host's, which nobody hears while no
replica has it. From then on envelopes go from replica to replica, on a subject for each visit and direction, of which each
replica hears its own with one subscription. Nothing is stored, and nothing sent again: what is lost does not open at its end,
which comes again. A replica that was not heard for SILENT_S has died: its visits end, and both ends come again by another.
"""

import asyncio
import contextlib
import itertools
import logging
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import nats.errors
from nats.aio.subscription import Subscription

from trunkline_bus import metrics
from trunkline_bus.client import Client, Received
from trunkline_bus.mux import Lost, Mux, NoAnswer
from trunkline_bus.tasks import end
from trunkline_relay.between import Alive, Answer, End, Open, read, sid_of
from trunkline_relay.lines import MAX_WAITING
from trunkline_relay.switch import HostPlace, Line, Switch, Visit, opened
from trunkline_seal.control import Base, Failed, Opened, b64, plain
from trunkline_seal.handshake import SID_BYTES
from trunkline_wire import TrunklineError, subjects

log = logging.getLogger(__name__)

BEAT_S: Final = 1.0
SILENT_S: Final = 5.0
ANSWER_S: Final = 5.0


class Asked:
    """A host that is here, and is asked for. `told` once its own announcement came back: what is announced after that is newer."""

    def __init__(self, place: HostPlace, subscription: Subscription, number: int) -> None:
        self.place = place
        self.subscription = subscription
        self.number = number
        self.told = False


class Guest:
    """A device that is here, of a host that is elsewhere."""

    def __init__(self, replicas: "Replicas", sid: bytes, line: Line) -> None:
        self._replicas = replicas
        self.sid = sid
        self.line = line
        self.replica = ""
        self.over = False

    def up(self, envelope: bytes) -> None:
        if not self._replicas.pass_on("up", self.replica, self.sid, envelope):
            self.leave(
                "the relay's replicas can't reach each other", ("host_away", "the relay lost the host's replica")
            )

    def leave(self, reason: str, told: tuple[str, str] | None = None) -> None:
        if not self.over:
            self.ended(told)
            if self.replica:
                self._replicas.tell_end(self.replica, self.sid, End(reason=reason))

    def ended(self, told: tuple[str, str] | None) -> None:
        """The other side has ended it."""
        self.over = True
        self._replicas.guests.pop(self.sid, None)
        if told is not None:
            self.line.say(Failed(code=told[0], message=told[1]))
        self.line.end()


class Afar:
    """A Line to a device that is at another replica."""

    def __init__(self, replicas: "Replicas", sid: bytes, replica: str) -> None:
        self._replicas = replicas
        self._sid = sid
        self.replica = replica
        self.visit: Visit | None = None
        self._last = End()
        self._ended = False

    @property
    def crowded(self) -> bool:
        return False  # only a host's line is asked, and that is where the host is

    def say(self, message: Base) -> None:
        if isinstance(message, Failed):
            self._last = End(code=message.code, message=message.message)

    def put(self, frame: bytes) -> bool:
        return not self._ended and self._replicas.pass_on("down", self.replica, self._sid, frame)

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            self._replicas.afar.pop(self._sid, None)
            self._replicas.tell_end(self.replica, self._sid, self._last)


class Replicas:
    """This replica among the others. `guests` are devices here, `afar` the visits of hosts here from elsewhere, both by sid."""

    def __init__(self, client: Client, switch: Switch, clock: Callable[[], float]) -> None:
        self.name = secrets.token_hex(8)
        self.guests: dict[bytes, Guest] = {}
        self.afar: dict[bytes, Afar] = {}
        self._client = client
        self._mux = Mux(client)
        self._switch = switch
        self._clock = clock
        self._heard: dict[str, float] = {}
        self._asked: dict[str, Asked] = {}
        self._numbers = itertools.count(1)
        self._visits: Subscription

    @property
    def trouble(self) -> str | None:
        """What is wrong, for the health check."""
        return None if self._client.is_connected else "disconnected"

    async def arrived(self, place: HostPlace) -> None:
        """The host is asked for here from now on, and no more where it was."""
        await self._forget(place.name)
        subscription = await self._client.subscribe_direct(
            subjects.relay_open(place.name), lambda message: self._on_open(place, message)
        )
        asked = self._asked[place.name] = Asked(place, subscription, next(self._numbers))
        # The host's devices are told to come once it can be asked for. nats-py's ping overtakes what waits to be sent: the second does not.
        with contextlib.suppress(nats.errors.Error):  # with the next connection it is asked for again
            for _ in range(2):
                if self._client.is_connected:
                    await self._client.flush(timeout=round(ANSWER_S))
        self._publish(subjects.RELAYS_ALIVE, Alive(replica=self.name, arrived=place.name, number=asked.number))

    async def departed(self, place: HostPlace) -> None:
        asked = self._asked.get(place.name)
        if asked is not None and asked.place is place:
            await self._forget(place.name)

    async def visit(self, host: str, line: Line, *, device: bytes | None, pairing: str) -> Guest:
        """Raises TrunklineError `host_away`, and what the replica says that has the host."""
        guest = Guest(self, secrets.token_bytes(SID_BYTES), line)
        wish = Open(
            replica=self.name, sid=guest.sid.hex(), device=b64(device) if device is not None else "", pairing=pairing
        )
        self.guests[guest.sid] = guest
        try:
            answer = await self._ask(host, wish)
            if answer.code:
                raise TrunklineError(answer.code, answer.message)
            if guest.over:
                raise TrunklineError("host_away", "the host has just gone")
        except BaseException:
            self.guests.pop(guest.sid, None)
            self._publish(subjects.relay_open(host), msgspec.structs.replace(wish, gone=True))
            raise
        line.say(Opened(sid=guest.sid.hex(), device=wish.device))
        return guest

    async def _ask(self, host: str, wish: Open) -> Answer:
        try:
            said = await self._mux.ask(subjects.relay_open(host), msgspec.json.encode(wish), wait=ANSWER_S)
        except (Lost, NoAnswer) as error:
            raise TrunklineError("host_away", "the relay's replicas do not reach each other at the moment") from error
        answer = read(said.data, Answer)
        if (said.headers is not None and said.headers.get("Status") == "503") or answer is None:
            raise TrunklineError("host_away", "the host is not connected: it is off, or has no network")
        guest = self.guests.get(bytes.fromhex(wish.sid))
        if guest is not None and answer.replica:
            guest.replica = answer.replica
            self._heard[answer.replica] = self._clock()
        return answer

    def pass_on(self, way: subjects.RelayWay, replica: str, sid: bytes, data: bytes) -> bool:
        """Whether it could be sent; nothing waits for a server that takes too little."""
        waiting = self._client.pending_data_size
        if waiting + len(data) > MAX_WAITING:
            metrics.RELAY_SLOW.labels("replica").inc()
            return False
        try:
            self._mux.send(subjects.relay_visit(way, replica, sid.hex()), data)
        except (Lost, TrunklineError):
            return False
        return True

    def tell_end(self, replica: str, sid: bytes, said: End) -> None:
        self.pass_on("end", replica, sid, msgspec.json.encode(said))

    def lost(self) -> None:
        """The server is gone: what went over it ends at once, and comes again."""
        self._mux.lost()
        self._end_those_of(lambda _: True)

    async def back(self) -> None:
        """Under another name: what the others have of the former one ends there as of a replica that has died."""
        self.name = secrets.token_hex(8)
        for asked in self._asked.values():
            asked.told = True  # whether it was or not: what comes from now on is newer
        self._mux.back()
        former, self._visits = (
            self._visits,
            await self._client.subscribe_direct(subjects.relay_visits(self.name), self._on_visit),
        )
        await former.unsubscribe()

    async def open(self) -> None:
        """Call once, when the connection stands."""
        await self._mux.open()
        await self._client.subscribe_direct(subjects.RELAYS_ALIVE, self._on_alive)
        self._visits = await self._client.subscribe_direct(subjects.relay_visits(self.name), self._on_visit)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._publish(subjects.RELAYS_ALIVE, Alive(replica=self.name))
            await asyncio.sleep(BEAT_S)
            late = self._clock() - SILENT_S
            self._heard = {replica: at for replica, at in self._heard.items() if at > late}
            self._end_those_of(lambda replica: bool(replica) and replica not in self._heard)

    def _end_those_of(self, dead: Callable[[str], bool]) -> None:
        for guest in list(self.guests.values()):
            if dead(guest.replica):
                guest.ended(("host_away", "the relay lost the replica that had the host"))
        for afar in list(self.afar.values()):
            if dead(afar.replica) and afar.visit is not None:
                afar.visit.leave("the relay lost the replica that had the device")

    async def _forget(self, host: str) -> None:
        asked = self._asked.pop(host, None)
        if asked is not None and not self._client.is_closed:
            with contextlib.suppress(nats.errors.Error):
                await asked.subscription.unsubscribe()

    def _on_open(self, place: HostPlace, message: Received) -> None:
        wish = read(message.data, Open)
        if wish is None:
            return
        if wish.gone:
            former = self.afar.get(sid_of(wish.sid))
            if former is not None and former.visit is not None:
                former.visit.leave("the device has gone")
            return
        try:
            sid = sid_of(wish.sid)
            if len(sid) != SID_BYTES or sid in self.afar or not message.reply:
                raise TrunklineError("bad_frame", "a replica asks for no new visit")
            if self._switch.hosts.get(place.name) is not place:
                raise TrunklineError("host_away", "the host has just gone")
            afar = Afar(self, sid, wish.replica)
            device = plain(wish.device) if wish.device else None
            visit = afar.visit = place.visit(afar, device=device, pairing=wish.pairing, sid=sid)
        except TrunklineError as error:
            if message.reply:
                self._publish(message.reply, Answer(code=error.code, message=error.message))
        else:
            self.afar[sid] = afar
            self._heard[wish.replica] = self._clock()
            self._publish(message.reply, Answer(replica=self.name))
            place.line.say(opened(visit, wish.pairing))

    def _on_alive(self, message: Received) -> None:
        alive = read(message.data, Alive)
        if alive is None:
            return
        asked = self._asked.get(alive.arrived)
        if alive.replica == self.name:
            if asked is not None and asked.number == alive.number:
                asked.told = True
            return
        if alive.replica in self._heard:
            self._heard[alive.replica] = self._clock()
        if asked is not None and asked.told:
            self._switch.replace(alive.arrived)

    def _on_visit(self, message: Received) -> None:
        _, _, way, _, text = message.subject.split(".")
        sid = sid_of(text)
        guest, afar = self.guests.get(sid), self.afar.get(sid)
        match way:
            case "up" if afar is not None and afar.visit is not None:
                afar.visit.up(message.data)
            case "down" if guest is not None:
                if not guest.line.put(message.data):
                    guest.leave("the device is too slow")
            case "end":
                said = read(message.data, End) or End()
                if guest is not None:
                    guest.ended((said.code, said.message) if said.code else None)
                if afar is not None and afar.visit is not None:
                    afar.visit.leave(said.reason)
            case _:
                pass  # of a visit that is over

    def _publish(self, subject: str, said: msgspec.Struct) -> None:
        try:
            self._mux.send(subject, msgspec.json.encode(said))
        except (Lost, TrunklineError):
            log.info("not_told")


@asynccontextmanager
async def replicated(
    url: str, seed: str | None, switch: Switch, clock: Callable[[], float]
) -> AsyncGenerator[Replicas]:
    """This replica among those on the NATS server at `url`, until the block ends. `seed`: the file of the user `relay`'s key.

    Raises nats.errors.Error where the server can't be reached in the beginning.
    """
    client = Client()
    replicas = Replicas(client, switch, clock)

    async def on_disconnect() -> None:
        log.warning("replicas_apart")
        replicas.lost()

    async def on_reconnect() -> None:
        log.info("replicas_together")
        await replicas.back()

    async def on_error(error: Exception) -> None:
        log.warning("nats_error", extra={"error": f"{type(error).__name__}: {error}"})

    options: dict[str, Any] = {"reconnect_time_wait": 0.25}  # a float, whatever its annotation says
    await client.connect(
        servers=[one.strip() for one in url.split(",")],
        name="trunkline-relay",
        nkeys_seed=seed,
        inbox_prefix="_INBOX_relay" if seed else "_INBOX",
        max_reconnect_attempts=-1,
        connect_timeout=5,
        ping_interval=5,
        max_outstanding_pings=2,
        disconnected_cb=on_disconnect,
        reconnected_cb=on_reconnect,
        error_cb=on_error,
        **options,
    )
    try:
        await replicas.open()
        running = asyncio.create_task(replicas.run())
        try:
            yield replicas
        finally:
            await end(running)
    finally:
        await client.close()
