"""The verbs of the demo agent, each with what has to be there before it, and what shows that it took effect."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from tests.chaos.commands.ground import Ground, first

from trunkline_testkit.chaos.evidence import Evidence
from trunkline_wire import Data
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import (
    Archive,
    Close,
    Fork,
    Interrupt,
    Kill,
    Native,
    Prompt,
    Rename,
    Resume,
    SetMode,
    SetModel,
    Steer,
    Unarchive,
)
from trunkline_wire.ids import new_session_id

Notes = list[dict[str, Any]]


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """`before` brings a new session to where the command is sent. `effect` is the command's trace in log and journal, by the
    command's id. `again`: it may be done again where its owner ended, since twice is as once.
    """

    name: str
    before: Callable[[Ground, str], Awaitable[None]]
    args: Callable[[], Data]
    effect: Callable[[Evidence, str], bool]
    done: str = ""
    """An event that follows the outcome in an undisturbed run."""
    again: bool = False
    targets_turn: bool = False


async def new(ground: Ground, session: str) -> None:
    pass


async def ready(ground: Ground, session: str) -> None:
    """An agent runs, and is idle."""
    await ground.prompt(session, "say ready")
    await ground.has(session, "turn.completed")


async def busy(ground: Ground, session: str) -> None:
    """A turn runs and says nothing."""
    await ground.prompt(session, "silent")
    await ground.has(session, "turn.started")


async def streaming(ground: Ground, session: str) -> None:
    """A turn runs for longer than any test."""
    await ground.prompt(session, "slow 2000; say on")
    await ground.has(session, "turn.started")


async def closed(ground: Ground, session: str) -> None:
    await ground.command(session, Close())
    await ground.has(session, "session.closed")
    await ground.ownerless(session)


async def archived(ground: Ground, session: str) -> None:
    await ground.command(session, Archive())
    await ground.has(session, "session.archived")
    await ground.ownerless(session)  # or else its owner, who is about to leave, may still take the next command


def text(words: str) -> list[Any]:
    return [TextBlock(text=words)]


def heard(evidence: Evidence, command: str) -> bool:
    """The agent has the prompt."""
    return any(note["kind"] == "prompt" and note["id"] == command for note in evidence.journal)


def noted(kind: str, **fields: Any) -> Callable[[Evidence, str], bool]:
    def effect(evidence: Evidence, _: str) -> bool:
        return any(n["kind"] == kind and all(n.get(k) == v for k, v in fields.items()) for n in evidence.journal)

    return effect


def logged(type: str, **data: Any) -> Callable[[Evidence, str], bool]:
    return lambda evidence, _: first(evidence.events, type, **data) is not None


SCENES: Final = (
    Scene(
        name="prompt to an idle agent",
        before=new,
        args=lambda: Prompt(content=text("say one")),
        effect=heard,
        done="turn.completed",
    ),
    Scene(
        name="prompt to an agent in a turn",
        before=streaming,
        args=lambda: Prompt(content=text("say two"), delivery="queue"),
        effect=heard,
    ),
    Scene(
        name="prompt that steers",
        before=streaming,
        args=lambda: Prompt(content=text("say three"), delivery="steer"),
        effect=heard,
    ),
    Scene(
        name="steer", before=streaming, args=lambda: Steer(content=text("say four")), effect=heard, targets_turn=True
    ),
    Scene(
        name="interrupt",
        before=busy,
        args=Interrupt,
        effect=noted("interrupt"),
        done="turn.completed",
        targets_turn=True,
    ),
    Scene(
        name="set_model",
        before=ready,
        args=lambda: SetModel(model="demo-large"),
        effect=logged("session.updated", model="demo-large"),
        again=True,
    ),
    Scene(
        name="set_mode without an agent",
        before=new,
        args=lambda: SetMode(mode="free"),
        effect=logged("session.updated", mode="free"),
        again=True,
    ),
    Scene(
        name="rename",
        before=ready,
        args=lambda: Rename(title="another"),
        effect=logged("session.updated", title="another"),
        again=True,
    ),
    Scene(
        name="native",
        before=ready,
        args=lambda: Native(method="echo", params={"a": 1}),
        effect=noted("native"),
    ),
    Scene(
        name="fork",
        before=ready,
        args=lambda: Fork(session=new_session_id()),
        effect=lambda _evidence, _command: True,
        again=True,
    ),
    Scene(name="archive", before=ready, args=Archive, effect=logged("session.archived"), again=True),
    Scene(
        name="unarchive",
        before=archived,
        args=Unarchive,
        effect=logged("session.resumed", how="unarchived"),
        again=True,
    ),
    Scene(name="close", before=ready, args=Close, effect=logged("session.closed"), done="session.closed", again=True),
    Scene(
        name="close in a turn",
        before=busy,
        args=Close,
        effect=logged("session.closed"),
        done="session.closed",
        again=True,
    ),
    Scene(name="kill", before=busy, args=Kill, effect=logged("session.closed"), done="session.closed", again=True),
    Scene(
        name="resume",
        before=closed,
        args=Resume,
        effect=logged("session.resumed", how="reopened"),
        again=True,
    ),
)
