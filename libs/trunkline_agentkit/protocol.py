"""What an adapter is: small protocols, usable with and without a log behind them.

An adapter knows one agent's protocol. It starts the agent with `Start.launch`, yields each native message with what it
means (`Native`), and does what it is asked. Its `Translator` is pure, so that recordings can be translated without an agent.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from trunkline_agentkit.agent_process import AgentProcess, Exit
from trunkline_agentkit.manifest import Manifest
from trunkline_agentkit.recorder import Recorded, Recorder
from trunkline_agentkit.survivor import Survivor
from trunkline_wire import Data, Source, TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.blocks import Block, Json
from trunkline_wire.session import Capabilities, SessionOptions, Thinking
from trunkline_wire.turn import Delivery, DeltaKind, TerminalScreen, ToolProgress


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a translator may know: ids are hashes of session, incarnation and the agent's own ids."""

    session: str
    incarnation: str
    cwd: str
    keep_native: str = "all"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """An event for the log. Session, time, turn, origin and native message are filled in by the kit."""

    data: Data
    item: str | None = None
    lane: str | None = None
    cause: str | None = None
    source: Source | None = None


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """The next piece of a block that is being written; the kit counts offsets and merges."""

    item: str
    block: int
    kind: DeltaKind
    text: str
    lane: str | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Of which only the latest counts: what a tool has printed, or a terminal shows (which is no item's)."""

    data: ToolProgress | TerminalScreen
    item: str | None = None
    lane: str | None = None


class ItemEnd(msgspec.Struct, frozen=True):
    """The blocks of this item are finished."""

    item: str


Out = Fact | Piece | Progress | ItemEnd


class Native(msgspec.Struct, frozen=True, kw_only=True):
    """One native message: its bytes as the agent sent them, what it means, and its type in the agent's words.

    `out` empty means that it means nothing to Trunkline (a reviewed case): the kit keeps it as `native.message {known: true}`.
    """

    raw: bytes
    out: Sequence[Out] = ()
    kind: str
    ours: bool = False
    """Not from the agent: what follows from a message of ours, between the agent's in the order of things. `raw` is empty, and
    its events have no `origin`."""


class Translator(Protocol):
    """A pure state machine from native messages to events: no I/O, no clock."""

    def feed(self, message: dict[str, Any]) -> list[Out]:
        """What a message of the agent means; [] for nothing. May raise: the kit keeps the message as untranslated."""
        ...

    def sent(self, message: dict[str, Any]) -> list[Out]:
        """What a message that we sent to the agent means for what follows."""
        ...


class Launch(Protocol):
    """Starts the agent's program. The host behind it supplies the lock, the recording and the registration."""

    async def __call__(
        self, argv: Sequence[str], *, cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> AgentProcess:
        """`cwd` and `environment` default to those of the Start. Raises TrunklineError `agent_not_found`, `bad_directory`."""
        ...


class OpenRecorder(Protocol):
    """Opens the recording of a session's traffic, for an agent that is not launched; None: nothing is recorded."""

    async def __call__(self) -> Recorder | None: ...


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """All that a start or resume needs. `environment` is explicit and complete: nothing is inherited besides."""

    session: str
    cwd: str
    incarnation: str
    environment: dict[str, str]
    launch: Launch
    recorder: OpenRecorder | None = None
    """Not needed with `launch`, which records by itself."""
    options: SessionOptions = SessionOptions()
    agent: str | None = None
    """Which of its agents an adapter of several shall start."""
    title: str | None = None
    native_session: str | None = None
    """The agent's own session to take up (resume), or to copy (`fork`)."""
    native_since: str | None = None
    """When that session was first told of in this log (RFC 3339); None where it never was."""
    fork: bool = False
    fork_at: str | None = None
    survivor: Survivor | None = None
    """The agent of this incarnation runs on: it is to be taken up as it is (see `Adopting`)."""

    @property
    def context(self) -> Context:
        return Context(
            session=self.session,
            incarnation=self.incarnation,
            cwd=self.cwd,
            keep_native=self.options.keep_native,
        )


class UserPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A user message on its way to the agent. `command` is the id of the command that brought it."""

    command: str
    content: list[Block]
    delivery: Delivery = "sent"
    """`sent` to an idle agent, `queued` behind a running turn, `steered` into it."""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    version: str | None = None


class BackendSession(Protocol):
    """One running agent."""

    async def send(self, prompt: UserPrompt) -> None:
        """Hands a user message to the agent. Raises TrunklineError `agent_failed` when it has ended.

        The turn that it begins is a `turn.started` whose cause is `prompt.command`. A queued message that the agent folds
        into a running turn, or drops, is told as `message.user` again: same item, delivery `steered` or `cancelled`.
        """
        ...

    def messages(self) -> AsyncIterator[Native]:
        """Every native message in order, once, and what follows from ours; ends when the agent's output ends."""
        ...

    async def close(self, grace: float = 5.0) -> Exit:
        """Ends the agent: end of input, `grace` seconds, SIGTERM, five seconds, SIGKILL. May be called twice."""
        ...


class BackendAdapter(Protocol):
    """One kind of agent."""

    @property
    def name(self) -> str: ...

    @property
    def manifest(self) -> Manifest: ...

    @property
    def capabilities(self) -> Capabilities:
        """What the agent is declared to be able to do before it says so itself in `session.initialized`."""
        ...

    def translator(self, context: Context) -> Translator: ...

    async def create(self, start: Start) -> BackendSession:
        """Starts an agent with a new native session. Raises TrunklineError `agent_not_found`, `agent_failed`, `unsupported`."""
        ...

    async def resume(self, start: Start) -> BackendSession:
        """Starts an agent that takes up (or forks) `start.native_session`.

        Raises what `create` raises, and TrunklineError `history_lost` where the agent does not know that session.
        """
        ...

    async def probe(self) -> Installed:
        """Where the program is and its version. Raises TrunklineError `agent_not_found`."""
        ...

    async def close(self) -> None:
        """Frees what the adapter shares between sessions."""
        ...


@runtime_checkable
class KeepsRecordings(Protocol):
    """An adapter whose programs are recorded in forms of their own, too."""

    def recorded(self, path: Path) -> list[Recorded]:
        """A recording of its own form, or of the kit's. Raises ValueError for a file that is none."""
        ...


@runtime_checkable
class Adopting(Protocol):
    """An adapter some of whose agents run on when their worker dies: servers that run by themselves.

    Its `resume` is given such an agent as `Start.survivor`. The session then tells what the log lacks, withdraws the asks
    that the agent does not wait for any more, keeps the ids of those it does, and ends this with `session.resumed` (how:
    `adopted`). Raises what `resume` raises where the agent is gone after all.
    """

    def outlives(self, options: SessionOptions) -> bool:
        """Whether an agent that was started with these options needs no worker to run on."""
        ...


@runtime_checkable
class Abandonable(Protocol):
    """A session whose agent may run on by itself."""

    async def abandon(self) -> Exit:
        """Lets go of an agent that is another owner's, or the next one's: it ends the connection alone."""
        ...


@runtime_checkable
class Witness(Protocol):
    """A session that was taken up and knows what the agent was given before."""

    def received(self, command: str) -> bool:
        """Whether the prompt that this command brought was written to the agent."""
        ...


@runtime_checkable
class Terminal(Protocol):
    """A session whose agent has a terminal, at which people may look and type. Its capabilities say `terminal`."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        ...

    @property
    def writable(self) -> bool: ...

    def follow(self, shows: Callable[[bytes], None] | None) -> None:
        """From now on `shows` gets what is printed, as UTF-8, in the step of the loop in which it was read."""
        ...

    async def paint(self, history: int, place: Callable[[bytes], None]) -> None:
        """Hands to `place`, once, what a terminal of this size has to print to look like this one: what `shows` gets next
        follows from it. `history` lines that have scrolled away come first.
        """
        ...

    async def type(self, keys: str) -> None:
        """Raises TrunklineError `agent_failed` when nobody takes keys any more, `unsupported` where none may be typed."""
        ...

    async def resize(self, columns: int, rows: int) -> None:
        """Raises what `type` raises."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        """Asks the agent to end its turn; the turn's end comes with `messages()`."""
        ...


@runtime_checkable
class PermissionHandler(Protocol):
    async def decide(self, ask: str, decision: AskDecided) -> None:
        """Hands a decision to the agent. Raises TrunklineError `unknown_ask` when the agent no longer waits for it."""
        ...

    async def pending(self) -> set[str] | None:
        """The ids of the asks that the agent waits for; None where it can't tell."""
        ...


@runtime_checkable
class Configurable(Protocol):
    """Every method raises TrunklineError `unsupported` with `capability` where the agent lacks it. See `ConfigurableBase`."""

    async def set_model(self, model: str) -> None: ...

    async def set_mode(self, mode: str) -> None: ...

    async def set_thinking(self, level: Thinking) -> None: ...

    async def run_command(self, name: str, arguments: str, command_id: str) -> None: ...

    async def compact(self, instructions: str | None, command_id: str) -> None: ...

    async def rewind(self, to: str, *, dry_run: bool = False) -> Json:
        """`to` is the command id of the prompt before which the files shall be as they were."""
        ...

    async def rename(self, title: str) -> None: ...

    async def native(self, method: str, params: dict[str, Json]) -> Json: ...


class ConfigurableBase:
    """A `Configurable` that can do nothing: adapters inherit it and override what their agent can."""

    async def set_model(self, model: str) -> None:
        raise unsupported("model_switching", f"the agent can't switch to model {model!r} while it runs")

    async def set_mode(self, mode: str) -> None:
        raise unsupported("mode_switching", f"the agent can't switch to mode {mode!r} while it runs")

    async def set_thinking(self, level: Thinking) -> None:
        raise unsupported("thinking", f"the agent can't be set to think at level {level!r}")

    async def run_command(self, name: str, arguments: str, command_id: str) -> None:  # noqa: ARG002  # the protocol's signature
        raise unsupported("slash_commands", f"the agent has no commands, so {name!r} can't be run")

    async def compact(self, instructions: str | None, command_id: str) -> None:  # noqa: ARG002  # likewise
        raise unsupported("compaction", "the agent can't be asked to compact its context")

    async def rewind(self, to: str, *, dry_run: bool = False) -> Json:  # noqa: ARG002  # likewise
        raise unsupported("rewind", "the agent can't put files back")

    async def rename(self, title: str) -> None:
        """Nothing to tell the agent: the title is Trunkline's own."""

    async def native(self, method: str, params: dict[str, Json]) -> Json:  # noqa: ARG002  # likewise
        raise unsupported("native_protocol", f"the agent takes no native requests, so {method!r} can't be sent")


def unsupported(capability: str, message: str) -> TrunklineError:
    """The error for what an agent lacks; `capability` names the field of Capabilities."""
    return TrunklineError("unsupported", message, capability=capability)


def refuse_options(adapter: BackendAdapter, options: SessionOptions) -> None:
    """Raises TrunklineError `unsupported` naming every option that is set and that the adapter does not honour.

    Directory, first prompt, environment and what is kept of native messages are the kit's own business.
    """
    default = SessionOptions()
    honoured = {*adapter.capabilities.options, "environment", "prompt", "keep_native"}
    if options.hold in {"auto", *adapter.capabilities.hold}:
        honoured.add("hold")
    if adapter.capabilities.resume:
        honoured.add("resume_native")
    lacking = [
        name
        for name in SessionOptions.__struct_fields__
        if name not in honoured and getattr(options, name) != getattr(default, name)
    ]
    if lacking:
        raise TrunklineError(
            "unsupported",
            f"adapter {adapter.name!r} does not honour {', '.join(map(repr, lacking))}: leave them out",
            capability="options",
            options=lacking,
        )
