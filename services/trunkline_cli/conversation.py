"""A session in front of a person or a script: its events shown, prompts and answers sent, Ctrl-C understood.

What ends it: the session closes; the awaited command's turn ends; the person leaves (Ctrl-D, /detach, a second Ctrl-C).
Leaving ends nothing but the view: the session goes on.
"""

import asyncio
from typing import Any, Final

import msgspec

from trunkline_cli.context import decide
from trunkline_cli.dialog import Dialog
from trunkline_cli.keyboard import Keyboard, interrupts
from trunkline_cli.output import DIM, RED, YELLOW, Screen, ndjson
from trunkline_cli.render import Renderer
from trunkline_client import Broken, Gap, Link, Notice, Opened, Received, Snapshot, Start, whole
from trunkline_fold.answering import Ask, decode_ask
from trunkline_fold.awaiting import Awaited
from trunkline_wire import Event, TrunklineError, decode_event, encode
from trunkline_wire.asks import (
    AskDecided,
    AskExpired,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    QuestionAsked,
)
from trunkline_wire.ids import new_command_id
from trunkline_wire.session import SessionClaimed, SessionClosed
from trunkline_wire.turn import TurnCompleted, TurnStarted

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130

HELP: Final = """\
  a line is sent as a prompt; while a turn runs the agent queues it or folds it in
  /interrupt  stop the turn        /model NAME   switch the model
  /close      end the session      /mode NAME    switch the mode
  /detach     leave (also Ctrl-D)  /other …      a command of the agent
  Ctrl-C interrupts the turn; once more, or without a turn, it leaves"""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """`keyboard` reads prompts and answers from the terminal; `prompt` is sent once the session is watched, and with
    `wait` the end of its turn ends the view; `as_json` prints envelopes instead of texts.
    """

    keyboard: bool = False
    prompt: str | None = None
    delivery: str | None = None
    wait: bool = False
    as_json: bool = False
    start: Start = "snapshot"


class Conversation:
    """One view of one session. `run` returns the process's exit code."""

    def __init__(self, link: Link, session: str, screen: Screen, view: View) -> None:
        self._link = link
        self._session = session
        self._screen = screen
        self._view = view
        self._renderer = Renderer(screen)
        self._awaited = Awaited(new_command_id() if view.prompt is not None else None)
        self._sending: asyncio.Task[None] | None = None
        self._turn: str | None = None
        self._running = False
        self._asks: dict[str, Dialog] = {}
        self._interrupted = False
        self._done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self) -> int:
        """Show the session until something ends the view. Raises the gateway's TrunklineError."""
        with interrupts() as pressed:
            tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._take_interrupts(pressed))]
            if self._view.keyboard:
                tasks.append(asyncio.create_task(self._take_lines()))
            try:
                await asyncio.wait([*tasks, self._done], return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    if task.done():
                        task.result()
                return await self._done
            finally:
                if self._sending is not None:
                    tasks.append(self._sending)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                self._screen.end()

    # events

    async def _watch(self) -> None:
        async for notice in self._link.watch(session=self._session, start=self._view.start):
            await self._notice(notice)

    async def _notice(self, notice: Notice) -> None:
        match notice:
            case Opened():
                if self._sending is None and self._view.prompt is not None:
                    self._sending = asyncio.create_task(self._send(self._view.prompt))
            case Snapshot(payload=payload):
                self._snapshot(payload)
            case Received(event=value):
                await self._event(value)
            case Gap(payload=payload):
                self._asks.clear()
                reason = payload.get("reason", "unknown")
                self._screen.line(f"  events are missing here ({reason}); what follows is complete", YELLOW)
            case Broken(mended=mended):
                self._screen.line("  connected again" if mended else "  the gateway is gone; reconnecting …", DIM)

    def _snapshot(self, payload: dict[str, Any]) -> None:
        state: dict[str, Any] = payload.get("state") or {}
        turn: dict[str, Any] | None = state.get("turn")
        self._running = turn is not None
        self._turn = turn.get("id") if turn else None
        last: dict[str, Any] = state.get("last_turn") or {}
        if self._view.wait and self._awaited.command is not None and last.get("cause") == self._awaited.command:
            self._finish(EXIT_OK if last.get("outcome") == "success" else EXIT_FAILED)
        if self._view.as_json:
            return
        title = state.get("title") or state.get("cwd") or ""
        self._screen.line(f"{self._session}  {state.get('adapter')}  {state.get('status')}  {title}", DIM)
        for block in payload.get("blocks") or []:
            if block.get("kind") == "text" and not block.get("lane"):
                self._renderer.piece(block["item"], block["block"], 0, block["text"])
        for value in payload.get("asks") or []:
            ask = decode_ask(value)
            if ask.status == "open":
                self._open(ask)
        if self._view.keyboard and not self._running and not self._asks:
            self._prompt()

    def _open(self, ask: Ask) -> None:
        self._renderer.feed_ask(ask.requested)
        self._asks[ask.ask] = Dialog(ask.requested)
        self._show_dialog()

    async def _event(self, value: dict[str, Any]) -> None:
        if self._view.as_json:
            ndjson(value)
        event = decode_event(encode(value))
        if not self._view.as_json:
            event = await whole(self._link, event)
            self._renderer.feed(event)
        self._follow(event)

    def _follow(self, event: Event) -> None:
        success = self._awaited.feed(event)
        if success is not None and self._view.wait:
            self._finish(EXIT_OK if success else EXIT_FAILED)
        match event.data:
            case TurnStarted():
                self._running, self._turn, self._interrupted = True, event.turn, False
            case TurnCompleted():
                self._running, self._turn = False, None
                self._prompt()
            case SessionClosed():
                self._finish(EXIT_FAILED if self._view.wait else EXIT_OK)
            case SessionClaimed(incarnation=None):
                self._asks.clear()
            case PermissionRequested() | QuestionAsked() | PlanProposed() as asked:
                self._asks[asked.ask] = Dialog(asked)
                self._show_dialog()
            case AskDecided(ask=ask) | AskExpired(ask=ask) | AskWithdrawn(ask=ask):
                if self._asks.pop(ask, None) is not None:
                    self._show_dialog()
            case _:
                pass

    # the person

    def _prompt(self) -> None:
        if self._view.keyboard and not self._done.done():
            self._screen.ask("> ")

    def _show_dialog(self) -> None:
        dialog = next(iter(self._asks.values()), None)
        if dialog is None or self._view.as_json:
            return
        if self._view.keyboard:
            for line in dialog.text:
                self._screen.line(f"    {line}")
            self._screen.ask(dialog.prompt)
        else:
            ask = dialog.asked.ask
            self._screen.line(f"  waits for a decision: trunkline approve {ask[:16]}, or deny", YELLOW)

    async def _take_lines(self) -> None:
        with Keyboard().open() as keyboard:
            while True:
                line = await keyboard.lines.get()
                if line is None:
                    break
                try:
                    await self._line(line)
                except TrunklineError as error:
                    self._screen.line(f"error: {error}", RED)
                    self._show_dialog()
        self._leave()

    async def _line(self, line: str) -> None:
        text = line.strip()
        if text.startswith("/"):
            return await self._slash(text[1:])
        if self._asks:
            return await self._answer(text)
        if not text:
            return self._prompt()
        await self._prompt_agent(line, new_command_id())
        return None

    async def _send(self, text: str) -> None:
        command = self._awaited.command
        assert command is not None
        try:
            await self._prompt_agent(text, command, self._view.delivery)
        except TrunklineError as error:
            if not self._done.done():
                self._done.set_exception(error)

    async def _prompt_agent(self, text: str, command: str, delivery: str | None = None) -> None:
        self._renderer.mine.add(command)
        await self._link.call("session.prompt", session=self._session, text=text, id=command, delivery=delivery)

    async def _answer(self, text: str) -> None:
        ask, dialog = next(iter(self._asks.items()))
        answer = dialog.reply(text)
        if answer is None:
            self._screen.ask(dialog.prompt)
            return
        del self._asks[ask]
        await decide(self._link, ask, self._session, answer)
        self._show_dialog()

    async def _slash(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        rest = rest.strip()
        match name:
            case "help" | "?":
                self._screen.line(HELP)
            case "detach" | "quit" | "exit":
                self._leave()
            case "interrupt":
                await self._interrupt()
            case "close":
                await self._link.call("session.close", session=self._session)
            case "model" if rest:
                await self._command("set_model", {"model": rest})
            case "mode" if rest:
                await self._command("set_mode", {"mode": rest})
            case _:
                await self._command("run_command", {"name": name, "arguments": rest})
        if not self._running:
            self._prompt()

    async def _command(self, verb: str, args: dict[str, Any]) -> None:
        await self._link.call("session.command", session=self._session, verb=verb, args=args, id=new_command_id())

    async def _take_interrupts(self, pressed: asyncio.Queue[None]) -> None:
        while True:
            await pressed.get()
            if not (self._running or self._view.wait) or self._interrupted:
                self._leave(EXIT_INTERRUPTED)
                return
            self._interrupted = True
            try:
                await self._interrupt()
            except TrunklineError as error:
                self._screen.line(f"error: {error}", RED)

    async def _interrupt(self) -> None:
        self._screen.line("  interrupting; Ctrl-C again leaves", DIM)
        await self._link.call("session.interrupt", session=self._session, turn=self._turn, cancel_queued=True)

    def _leave(self, code: int = EXIT_OK) -> None:
        if not self._view.as_json:
            self._screen.line(f"left; the session goes on: trunkline attach {self._session[:16]}", DIM)
        self._finish(code if self._view.wait else EXIT_OK)

    def _finish(self, code: int) -> None:
        if not self._done.done():
            self._done.set_result(code)
