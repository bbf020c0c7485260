"""A running CLI: prompts and decisions in, translated messages out.

One task reads the CLI's output at once, so that answers to control requests arrive even while nobody iterates
`messages()`; above 8 MB of unread messages it stops reading, and the CLI waits.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from trunkline_adapters.claude import launch, replies
from trunkline_adapters.claude.content import native_content
from trunkline_adapters.claude.control import Control
from trunkline_adapters.claude.errors import SIGN_IN
from trunkline_adapters.claude.link import Link
from trunkline_adapters.claude.native import kind_of
from trunkline_adapters.claude.state import fact
from trunkline_adapters.claude.team_mail import TeamMail
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_agentkit import (
    AgentProcess,
    ConfigurableBase,
    Exit,
    Fact,
    Native,
    Out,
    Survivor,
    UserPrompt,
    decode_line,
    translate,
)
from trunkline_agentkit.agent_process import Said
from trunkline_agentkit.catching_up import CatchingUp
from trunkline_agentkit.fields import Obj, obj, text
from trunkline_agentkit.unread import Unread
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, PermissionRequested, PlanProposed, QuestionAsked
from trunkline_wire.blocks import Json
from trunkline_wire.session import Thinking
from trunkline_wire.turn import Delivery, MessageSystem

log = logging.getLogger(__name__)

START_DEADLINE: Final = 60.0
_PROMPTS: Final = uuid.UUID("7d5a4d0f-4c1a-5f0e-9a55-6f0d7f6c2a11")
_PRIORITIES: Final[dict[Delivery, str]] = {"queued": "later", "steered": "next"}
"""`next` is folded into the running turn between two rounds of tools, `later` gets a turn of its own."""
_DELIVERIES: Final[dict[str | None, Delivery]] = {priority: delivery for delivery, priority in _PRIORITIES.items()}
_NO_HISTORY: Final = "No conversation found with session ID"
_SIGNED_OUT: Final = ("/login", "Invalid API key", "authentication", "OAuth token")


def prompt_uuid(command: str) -> str:
    """The uuid of the user line that a command has brought: the same after a restart, so that a rewind finds it."""
    return str(uuid.uuid5(_PROMPTS, command))


class ClaudeSession(ConfigurableBase):
    """Made by `ClaudeAdapter`; `open` before use. `files` are removed once the CLI has ended; `mail` is that of its team.

    `said` is what had passed before it was taken up with `survivor`; then it is open already.
    """

    def __init__(
        self,
        link: Link,
        translator: ClaudeTranslator,
        initialize: Obj,
        files: Sequence[Path] = (),
        *,
        mail: TeamMail,
        said: Sequence[Said] = (),
        survivor: Survivor | None = None,
    ) -> None:
        self._link = link
        self._translator = translator
        self._initialize = initialize
        self._files = files
        self._mail = mail
        self._control = Control(link, translator.sent)
        self._unread = Unread()
        self._said = said
        self._survivor = survivor
        self._received = {uuid for one in said if (uuid := text(_ours(one), "uuid")) is not None}
        self._reading = asyncio.create_task(self._read(), name=f"output of {link.pid}")

    @property
    def pid(self) -> int:
        return self._link.pid

    @property
    def running(self) -> bool:
        return self._link.running

    @property
    def unread(self) -> int:
        """Bytes of messages that nobody has read yet."""
        return self._unread.size

    def notify(self, said: str) -> None:
        """Tells the user something of the way to the CLI."""
        notice = fact(MessageSystem(text=said, kind="transport"))
        self._unread.keep(Native(raw=b"", out=[notice], kind="transport", ours=True))

    async def open(self, thinking: Thinking | None = None) -> None:
        """Introduces us to the CLI and waits until it is ready. On failure the CLI is ended.

        Raises TrunklineError `agent_failed` or `agent_auth` with the end of its error output, `history_lost`, `timeout`.
        """
        try:
            await self._control.request(self._initialize, deadline=START_DEADLINE)
            if thinking is not None:
                await self.set_thinking(thinking)
        except TrunklineError as error:
            raise self._failed(await self.close(grace=0), error) from error
        except BaseException:
            await self.close(grace=0)
            raise

    def _failed(self, end: Exit, error: TrunklineError) -> TrunklineError:
        said = end.stderr_tail.strip()
        if error.code != "agent_failed":
            return error
        if any(word in said for word in _SIGNED_OUT):
            return TrunklineError("agent_auth", f"Claude Code is not signed in: {SIGN_IN}", stderr=said[-2000:])
        if _NO_HISTORY in said:
            return TrunklineError(
                "history_lost", "Claude Code has not kept this conversation (it saves with a delay, and was killed)"
            )
        return end.at_start("Claude Code")

    def received(self, command: str) -> bool:
        return prompt_uuid(command) in self._received

    async def send(self, prompt: UserPrompt) -> None:
        await self._prompt(prompt.command, native_content(prompt.content), prompt.delivery)

    async def _prompt(self, command: str, content: str | list[Obj], delivery: Delivery = "sent") -> None:
        line: Obj = {
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": None,
            "session_id": "",
            "uuid": prompt_uuid(command),
        }
        if (priority := _PRIORITIES.get(delivery)) is not None:
            line["priority"] = priority
        self._translator.prompt(line, command, delivery)
        await self._link.write_line(line)

    def messages(self) -> AsyncIterator[Native]:
        return self._unread.messages()

    async def close(self, grace: float = 5.0) -> Exit:
        self._unread.release()
        end = await self._link.close(grace)
        await asyncio.wait({self._reading})
        await asyncio.to_thread(launch.remove_files, self._files)
        return end

    async def abandon(self) -> Exit:
        """Lets go of a CLI that goes on without us; any other ends."""
        self._unread.release()
        link = self._link
        end = await (link.abandon() if isinstance(link, AgentProcess) else link.close(0))
        await asyncio.wait({self._reading})
        return end

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        request: Obj = {"subtype": "interrupt"}
        await self._control.request(request | ({"cancel_queued": True} if cancel_queued else {}))

    async def decide(self, ask: str, decision: AskDecided) -> None:
        waiting = self._translator.open_ask(ask)
        if waiting is None:
            raise TrunklineError("unknown_ask", f"the agent does not wait for {ask!r} any more")
        answer = replies.response(waiting.request_id, replies.decision(waiting, decision))
        if waiting.mailed:
            await self._mail.answer(answer)
            self._translator.sent(answer)
        else:
            await self._answer(answer)

    @property
    def has_unseen_team(self) -> bool:
        return self._translator.makes_teams

    async def team_changed(self) -> None:
        native = self._translator.native_session
        if native is None or not self.running:
            return
        out = self._translator.mailed(await self._mail.asked(native))
        if new := [one for one in out if not self._told(one)]:
            self._unread.keep(Native(raw=b"", out=new, kind="team_mail", ours=True))

    def _told(self, out: Out) -> bool:
        """Whether it is an ask that the log has from before we were taken up."""
        if self._survivor is None or not isinstance(out, Fact):
            return False
        data = out.data
        return isinstance(data, PermissionRequested | QuestionAsked | PlanProposed) and data.ask in self._survivor.asks

    async def pending(self) -> set[str] | None:
        if self._translator.makes_teams:
            await self.team_changed()
        again = {name: value for name, value in self._initialize.items() if name != "title"}
        try:
            await self._control.request(again)
        except TrunklineError as error:
            # CLIs that know no second `initialize` can't say what they wait for; their teammates' mail does.
            if error.code == "agent_failed" and self._link.running:
                return self._translator.open_asks(mailed=True) or None
            raise
        return self._translator.open_asks()

    async def set_model(self, model: str) -> None:
        await self._control.request({"subtype": "set_model", "model": model})

    async def set_mode(self, mode: str) -> None:
        await self._control.request({"subtype": "set_permission_mode", "mode": mode})

    async def set_thinking(self, level: Thinking) -> None:
        await self._control.request(launch.thinking(level))

    async def run_command(self, name: str, arguments: str, command_id: str) -> None:
        await self._prompt(command_id, f"/{name.removeprefix('/')} {arguments}".rstrip())

    async def compact(self, instructions: str | None, command_id: str) -> None:
        await self.run_command("compact", instructions or "", command_id)

    async def rewind(self, to: str, *, dry_run: bool = False) -> Json:
        prompt = prompt_uuid(to)
        self._translator.name_prompt(prompt, to)
        request: Obj = {"subtype": "rewind_files", "user_message_id": prompt}
        # The trial run names the files; the real one only says that it was done.
        trial = await self._control.request(request | {"dry_run": True})
        if trial.get("canRewind") is not True:
            said = text(trial, "error") or "no checkpoint of that prompt"
            raise TrunklineError("bad_params", f"the agent can't put the files back: {said}")
        if not dry_run:
            await self._control.request(request)
        return {
            "files": trial.get("filesChanged"),
            "lines_added": trial.get("insertions"),
            "lines_removed": trial.get("deletions"),
            "dry_run": dry_run,
        }

    async def rename(self, title: str) -> None:
        try:
            await self._control.request({"subtype": "rename_session", "title": title})
        except TrunklineError as error:
            # The title is Trunkline's own; an older CLI just does not hear of it.
            if error.code != "unsupported":
                raise

    async def native(self, method: str, params: dict[str, Json]) -> Json:
        return await self._control.request(params | {"subtype": method})

    async def _answer(self, message: Obj) -> None:
        self._translator.sent(message)
        await self._link.write_line(message)

    async def _read(self) -> None:
        try:
            if self._survivor is not None:
                await self._catch_up(self._survivor)
            async for line in self._link.lines():
                native, message = self._understand(line)
                if isinstance(self._link, AgentProcess):
                    self._link.taken()
                self._unread.keep(native)
                if message is not None:
                    await self._serve(message)
                await self._unread.room()
        finally:
            self._control.end()
            self._unread.end()

    def _understand(self, line: bytes) -> tuple[Native, Obj | None]:
        decoded = decode_line(line)
        message = decoded.message
        return translate(self._translator, decoded, kind_of(message) if message is not None else "?"), message

    async def _catch_up(self, survivor: Survivor) -> None:
        """Goes through all that had passed, in its order; what the log lacks of it is told, what nobody has answered is."""
        catching_up = CatchingUp(survivor)
        commands = {prompt_uuid(command): command for command in survivor.prompts}
        unanswered: dict[str, Obj] = {}
        for one in self._said:
            if one.ours:
                unanswered.pop(self._sent_before(_ours(one), commands), None)
                continue
            native, message = self._understand(one.line)
            for new in catching_up.pass_on(native):
                self._unread.keep(new)
            if message is not None and replies.automatic(message) is not None:
                unanswered[text(message, "request_id") or ""] = message
        for native in catching_up.end():
            self._unread.keep(native)
        self._said = ()
        for message in unanswered.values():
            await self._serve(message)

    def _sent_before(self, message: Obj, commands: Mapping[str, str]) -> str:
        """A line of ours that the CLI had before we took it up; the id of the request that it answers."""
        command = commands.get(text(message, "uuid") or "")
        if command is None:
            self._translator.sent(message)
        else:
            delivery = _DELIVERIES.get(text(message, "priority"), "sent")
            self._translator.prompt(message, command, delivery)
        return text(obj(message, "response"), "request_id") or ""

    async def _serve(self, message: Obj) -> None:
        """Settles our requests, and answers those of the CLI that nobody decides: unanswered, it would wait for ever."""
        if text(message, "type") == "control_response":
            self._control.settle(message)
        elif (answer := replies.automatic(message)) is not None:
            try:
                await self._answer(answer)
            except TrunklineError as error:
                log.info("answer_undelivered", extra={"code": error.code})


def _ours(said: Said) -> Obj:
    """A line of ours; nothing of the CLI's."""
    return (decode_line(said.line).message or {}) if said.ours else {}
