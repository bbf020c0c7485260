"""Suspension points: every message that a part publishes in an undisturbed run is a moment to attack the next run at.

    marks = watch(proxy)                     # one run, undisturbed
    for point in points(marks):              # then once more for each
        reached = at(proxy, point, worker.kill)

A point is named by what the message is and the how many-th of its kind it is: other traffic, such as leases and pulls,
comes at its own times and would shift a plain number.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from trunkline_testkit.proxy import Action, NatsProxy, Passing

When = Literal["before", "stored", "after"]
"""The message is lost on its way; it is stored and its acknowledgement is lost; it is stored and acknowledged."""

WRITES: Final = ("fact", "ask", "permission", "delta", "cmd", "answer", "spawn", "sys", "kv")
"""Kinds that change something, by the subject; `kv:<bucket>` counts as `kv`. What else passes is `api` or `other`."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A message of a run: its kind, its event's type (empty for none), the how many-th of both, from 1."""

    kind: str
    type: str
    nth: int

    def __str__(self) -> str:
        return f"{self.type or self.kind} #{self.nth}"


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of a run."""

    mark: Mark
    when: When

    def __str__(self) -> str:
        return f"{self.when} {self.mark}"


def kind_of(subject: str) -> str:
    """What a subject carries: `fact`, `ask`, `permission`, `team`, `delta`, `cmd`, `kv:trunk_leases`, `api`, `other` …"""
    match subject.split("."):
        case ["trunk", "ev", _, _, "agent", channel]:
            return channel
        case ["trunk", "ev", _, _, channel]:
            return channel
        case ["trunk", kind, *_]:
            return kind
        case ["$KV", bucket, *_]:
            return f"kv:{bucket}"
        case ["$JS", *_]:
            return "api"
        case _:
            return "other"


class Tally:
    """Numbers messages by kind and type."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def mark(self, message: Passing) -> Mark:
        kind = kind_of(message.subject)
        self._counts[kind, message.type] += 1
        return Mark(kind, message.type, self._counts[kind, message.type])


def watch(proxy: NatsProxy) -> list[Mark]:
    """The marks of what the client publishes from now on: the list grows until the proxy's hook is set anew."""
    tally, marks = Tally(), list[Mark]()

    def on_publish(message: Passing) -> None:
        marks.append(tally.mark(message))

    proxy.on_publish = on_publish
    return marks


def points(
    run: Iterable[Mark], kinds: Collection[str] = WRITES, whens: tuple[When, ...] = ("before", "stored", "after")
) -> list[Point]:
    """The moments around each message of those `kinds`. Deltas are not acknowledged: they are only lost or sent."""
    return [
        Point(mark, when)
        for mark in run
        if mark.kind.partition(":")[0] in kinds
        for when in whens
        if mark.kind != "delta" or when != "stored"
    ]


def at(proxy: NatsProxy, point: Point, act: Callable[[], object]) -> asyncio.Event:
    """Calls `act` once, when the run through `proxy` reaches `point`; the event returned is set then.

    `act` must not wait: it kills, stops, cuts, or starts a task. The hooks of the proxy are this function's until then.
    """
    tally, reached = Tally(), asyncio.Event()
    reply: list[str] = []

    def strike() -> None:
        proxy.on_publish = proxy.on_deliver = None
        act()
        reached.set()

    def on_publish(message: Passing) -> Action | None:
        if reply or tally.mark(message) != point.mark:
            return None
        if point.when == "before":
            strike()
            return "drop"
        if not message.reply:
            # Forwarded in this very step of the loop.
            asyncio.get_running_loop().call_soon(strike)
            reply.append("none comes")
        else:
            reply.append(message.reply)
        return None

    def on_deliver(message: Passing) -> Action | None:
        if reply != [message.subject]:
            return None
        if point.when == "stored":
            strike()
            return "drop"
        asyncio.get_running_loop().call_soon(strike)
        return None

    proxy.on_publish, proxy.on_deliver = on_publish, on_deliver
    return reached
