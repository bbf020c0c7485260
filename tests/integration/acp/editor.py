"""An editor: the official Python SDK's client on `trunkline acp`, and all that it was told."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

import acp
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from trunkline_testkit import eventually

Choose = Callable[[list[PermissionOption]], str | None]


def allow(options: list[PermissionOption]) -> str | None:
    return next(one.option_id for one in options if one.kind == "allow_once")


def deny(options: list[PermissionOption]) -> str | None:
    return next(one.option_id for one in options if one.kind == "reject_once")


class Editor:
    """`choose` answers a dialog with an option's id or None for cancelled; without it dialogs stay open until `release`."""

    def __init__(self, choose: Choose | None = allow) -> None:
        self.choose = choose
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.forms: list[Any] = []
        self.form_content: dict[str, Any] | None = None
        self.release = asyncio.Event()
        self.connection: Any = None
        self.process: asyncio.subprocess.Process | None = None

    # what the SDK calls

    def on_connect(self, conn: Any) -> None:
        self.connection = conn

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002  # the SDK passes it by name
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        if self.choose is None:
            await self.release.wait()
            chosen = allow(options)
        else:
            chosen = self.choose(options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        from acp.schema import AcceptElicitationResponse, DeclineElicitationResponse

        self.forms.append((message, mode))
        if self.form_content is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content=self.form_content)

    # what tests ask

    def of(self, kind: str, session: str | None = None) -> list[Any]:
        return [u for s, u in self.updates if u.session_update == kind and session in {None, s}]

    def said(self, session: str | None = None, kind: str = "agent_message_chunk") -> str:
        return "".join(u.content.text for u in self.of(kind, session) if u.content.type == "text")

    async def until(self, found: Callable[[], bool], within: float = 60) -> None:
        await eventually(found, within)

    async def prompt(self, session: str, text: str) -> Any:
        return await self.connection.prompt(session_id=session, prompt=[acp.text_block(text)])


@contextlib.asynccontextmanager
async def editor(
    command: list[str], environment: dict[str, str], choose: Choose | None = allow, *, forms: bool = True
) -> AsyncGenerator[Editor]:
    """The client with its agent: `command` is `trunkline acp` with its flags."""
    one = Editor(choose)
    client: Any = one
    async with acp.spawn_agent_process(client, *command, env=environment, use_unstable_protocol=True) as (
        conn,
        process,
    ):
        one.connection, one.process = conn, process
        able = ClientCapabilities()
        if forms:
            able = ClientCapabilities(elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()))
        answer = await conn.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=able)
        assert answer.protocol_version == 1
        yield one
