"""What each verb does. Every method ends with the command's outcome written, or raises the error that becomes it."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec.structs import replace

from trunkline_agentkit.life import AgentLife, Expected
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.process import Exit
from trunkline_agentkit.protocol import Configurable, Interruptible, UserPrompt, unsupported
from trunkline_agentkit.running import Running
from trunkline_agentkit.settings import OwnerSettings
from trunkline_bus.blobs import Blobs
from trunkline_bus.writer import SessionWriter
from trunkline_wire import Command, Source, Spawn, TrunklineError, timestamp
from trunkline_wire.blocks import BlobRef, Block, FileBlock, ImageBlock, TextBlock
from trunkline_wire.commands import (
    Archive,
    Close,
    Compact,
    Fork,
    HandOver,
    Interrupt,
    Kill,
    Native,
    Prompt,
    Rename,
    Reset,
    Resume,
    Rewind,
    RunCommand,
    SetMode,
    SetModel,
    SetThinking,
    Steer,
    Unarchive,
)
from trunkline_wire.ids import item_id
from trunkline_wire.session import SessionArchived, SessionReset, SessionResumed, SessionStatus, SessionUpdated
from trunkline_wire.turn import Delivery, MessageUser

Closer = Callable[[str, str, Exit | None], Awaitable[None]]
"""Closes the session for good: command id, reason, how the agent ended."""

HandsOver = Callable[[HandOver, str, Source | None], Awaitable[object]]
"""Hands the session over to its other interface for a command; returns the command's result."""


class Effects:
    """`spawn` sends a request for a session; `close` writes the session's end; `release` lets the session go; `hand_over`
    changes its interface.
    """

    def __init__(
        self,
        pen: Pen,
        writer: SessionWriter,
        life: AgentLife,
        settings: OwnerSettings,
        blobs: Blobs,
        *,
        spawn: Callable[[Spawn], Awaitable[None]],
        close: Closer,
        release: Callable[[], None],
        hand_over: HandsOver,
    ) -> None:
        self._pen = pen
        self._writer = writer
        self._life = life
        self._settings = settings
        self._blobs = blobs
        self._spawn = spawn
        self._close = close
        self._release = release
        self._hand_session_over = hand_over

    async def perform(self, command: Command, source: Source | None, headers: Mapping[str, str] | None) -> None:
        life = self._life
        match command.args:
            case Prompt() as args:
                await self._prompt(command, args, source, headers)
                return
            case Steer() as args:
                await self._hand_over(await life.ensure(), command, args.content, "steered", source)
                return
            case Close() as args:
                life.retire()
                exit = await life.stop("closed", grace=self._settings.close_grace)
                await self._close(command.id, args.reason or "closed", exit)
                return
            case Kill() as args:
                life.retire()
                life.kill()
                exit = await life.stop("killed", grace=0)
                await self._close(command.id, args.reason or "killed", exit)
                return
            case _:
                life.outcome(command.id, result=await self._change(command, source))

    async def _change(self, command: Command, source: Source | None) -> object:
        """Every verb but those of a message or an end; returns the result for `command.finished`."""
        life, pen = self._life, self._pen
        match command.args:
            case Interrupt() as args:
                await self._interrupt(args, command, source)
            case SetModel() as args:
                if life.agent is not None:
                    await self._configurable(life.agent).set_model(args.model)
                pen.write(SessionUpdated(model=args.model), cause=command.id, source=source)
            case SetMode() as args:
                if life.agent is not None:
                    await self._configurable(life.agent).set_mode(args.mode)
                pen.write(SessionUpdated(mode=args.mode), cause=command.id, source=source)
            case SetThinking() as args:
                if life.agent is not None:
                    await self._configurable(life.agent).set_thinking(args.level)
                pen.write(SessionUpdated(thinking=args.level), cause=command.id, source=source)
            case Rename() as args:
                if life.agent is not None and isinstance(life.agent.session, Configurable):
                    await life.agent.session.rename(args.title)
                pen.write(SessionUpdated(title=args.title), cause=command.id, source=source)
            case RunCommand() as args:
                await life.idle()
                await self._configurable(await life.ensure()).run_command(args.name, args.arguments, command.id)
            case Compact() as args:
                await life.idle()
                await self._configurable(await life.ensure()).compact(args.instructions, command.id)
            case Reset():
                await self._reset(command, source)
            case Rewind() as args:
                return await self._rewind(args)
            case Native() as args:
                return await self._configurable(await life.ensure()).native(args.method, args.params)
            case Fork() as args:
                return await self._fork(command, args, source)
            case Archive():
                await life.stop("archived", grace=self._settings.close_grace)
                pen.write(SessionArchived(by=source.actor if source else None), cause=command.id, source=source)
                self._release()
            case Unarchive():
                if pen.memory.session.archived:
                    pen.write(SessionResumed(how="unarchived"), cause=command.id, source=source)
            case Resume():
                self.reopen(command, source)
            case HandOver() as args:
                return await self._hand_session_over(args, command.id, source)
            case _:
                raise TrunklineError("unsupported", f"verb {command.verb!r} is not known here", capability=command.verb)
        return None

    async def _prompt(
        self, command: Command, args: Prompt, source: Source | None, headers: Mapping[str, str] | None
    ) -> None:
        life, capabilities = self._life, self._life.capabilities
        if self._pen.memory.session.archived:
            self.reopen(command, source)
        agent = await life.ensure()
        delivery: Delivery = "sent"
        if life.busy:
            running = self._pen.memory.session.turn is not None
            if args.delivery == "steer" and capabilities.steering and running:
                delivery = "steered"
            elif capabilities.queueing:
                delivery = "queued"
            else:
                await life.idle()
                agent = await life.ensure()
        await self._hand_over(agent, command, args.content, delivery, source, headers)

    async def _hand_over(
        self,
        agent: Running,
        command: Command,
        content: list[Block],
        delivery: Delivery,
        source: Source | None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Writes the user's message, and once that is in the log hands it to the agent."""
        item = item_id(self._pen.memory.session.session, agent.incarnation, command.id)
        self._pen.write(
            MessageUser(
                content=content, author=source.actor if source else None, delivery=delivery, command=command.id
            ),
            item=item,
            turn=agent.intake.turn if delivery == "steered" else None,
            cause=command.id,
            source=source,
        )
        if delivery != "steered":
            expected = Expected(sent=delivery == "sent", source=source, headers=headers)
            self._life.expect(command.id, expected)
        await self._writer.flush()
        prompt = UserPrompt(command=command.id, content=await self._inline(content), delivery=delivery)
        try:
            await agent.session.send(prompt)
        except BaseException:
            self._life.forget(command.id)
            raise
        if delivery != "sent":
            self._life.outcome(command.id)

    async def _inline(self, content: list[Block]) -> list[Block]:
        """Brings back what was too large for the command's message."""
        blocks: list[Block] = []
        for block in content:
            match block:
                case TextBlock(text=BlobRef() as reference):
                    blocks.append(replace(block, text=(await self._blobs.get(reference.sha256)).decode()))
                case ImageBlock(data=BlobRef() as reference) | FileBlock(data=BlobRef() as reference):
                    blocks.append(replace(block, data=(await self._blobs.get(reference.sha256)).decode()))
                case _:
                    blocks.append(block)
        return blocks

    async def _interrupt(self, args: Interrupt, command: Command, source: Source | None) -> None:
        agent = self._life.agent
        if agent is None:
            raise TrunklineError("stale_target", "no agent runs")
        if not isinstance(agent.session, Interruptible):
            raise unsupported("interrupt", "the agent can't be interrupted")
        if self._pen.memory.session.turn is not None:
            self._pen.write(
                SessionStatus(status="interrupting"), turn=agent.intake.turn, cause=command.id, source=source
            )
        await agent.session.interrupt(cancel_queued=args.cancel_queued)

    async def _reset(self, command: Command, source: Source | None) -> None:
        """Any agent can begin a conversation, once what runs has ended: it does so with the next prompt."""
        life, state = self._life, self._pen.memory.session
        if state.interface == "terminal":
            raise unsupported("terminal", "the agent's own terminal has the conversation: take the session back first")
        if "messages" in life.capabilities.heuristic:
            raise unsupported("resume", "the agent is known by its screen alone: what it would forget can't be told")
        await life.idle()

        async def write() -> None:
            by = source.actor if source else None
            self._pen.write(SessionReset(by=by), cause=command.id, source=source)
            await self._writer.flush()

        await life.replace_agent("reset", write, grace=self._settings.close_grace)

    async def _rewind(self, args: Rewind) -> object:
        prompt = self._pen.memory.prompt_of(args.to)
        if prompt is None:
            raise TrunklineError("bad_params", f"{args.to!r} is no user message of this session")
        return await self._configurable(await self._life.ensure()).rewind(prompt, dry_run=args.dry_run)

    async def _fork(self, command: Command, args: Fork, source: Source | None) -> object:
        state, options = self._pen.memory.session, self._pen.memory.options
        # A prompt may be named by its item, which only this session's log knows.
        at = None if args.at is None else self._pen.memory.prompt_of(args.at) or args.at
        await self._spawn(
            Spawn(
                id=command.id,
                session=args.session,
                adapter=state.adapter or "",
                cwd=state.cwd or "",
                time=timestamp(),
                host=state.host or "any",
                agent=state.agent,
                title=state.title,
                options=replace(options, prompt=args.prompt, resume_native=state.native_session),
                fork_of=state.session,
                fork_at=at,
                source=source,
            )
        )
        return {"session": args.session}

    def reopen(self, command: Command, source: Source | None) -> None:
        """Opens a closed or archived session again: from here on its other commands count."""
        state = self._pen.memory.session
        if state.closed is not None:
            self._pen.write(SessionResumed(how="reopened"), cause=command.id, source=source)
        elif state.archived:
            self._pen.write(SessionResumed(how="unarchived"), cause=command.id, source=source)

    @staticmethod
    def _configurable(agent: Running) -> Configurable:
        if not isinstance(agent.session, Configurable):
            raise unsupported("native_protocol", "the agent can't be changed while it runs")
        return agent.session
