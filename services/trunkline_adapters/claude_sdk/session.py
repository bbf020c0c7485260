"""A session of the SDK: that of the Claude adapter, but that the SDK introduces itself, and hands out decisions."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trunkline_adapters.claude import replies
from trunkline_adapters.claude import session as claude
from trunkline_adapters.claude.team_mail import TeamMail
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_adapters.claude_sdk.sdk import SdkLink
from trunkline_agentkit.fields import Obj, obj, objects, text
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.session import Thinking


class Decisions:
    """The SDK's `can_use_tool`, which waits for what somebody decides; each call gets one answer."""

    def __init__(self, sdk: Any) -> None:
        self._sdk = sdk
        self._waiting: dict[str, asyncio.Future[Obj]] = {}

    async def can_use_tool(self, name: str, given: Obj, context: Any) -> Any:
        del name, given  # the session has read the request itself
        tool = context.tool_use_id or ""
        answer = self._of(tool)
        try:
            return self._result(await answer)
        finally:
            self._waiting.pop(tool, None)

    def decide(self, tool: str, payload: Obj) -> None:
        """Hands over the answer, as the CLI would get it. Raises TrunklineError `unknown_ask` for a second one."""
        answer = self._of(tool)
        if answer.done():
            raise TrunklineError("unknown_ask", "the agent has been told a decision on this call")
        answer.set_result(payload)

    def _of(self, tool: str) -> asyncio.Future[Obj]:
        return self._waiting.setdefault(tool, asyncio.get_running_loop().create_future())

    def _result(self, payload: Obj) -> Any:
        if text(payload, "behavior") == "deny":
            return self._sdk.PermissionResultDeny(
                message=text(payload, "message") or "", interrupt=payload.get("interrupt") is True
            )
        updates = [self._sdk.PermissionUpdate.from_dict(one) for one in objects(payload, "updatedPermissions")]
        changed = payload.get("updatedInput")
        return self._sdk.PermissionResultAllow(
            updated_input=changed if isinstance(changed, dict) else None, updated_permissions=updates or None
        )


class ClaudeSdkSession(claude.ClaudeSession):
    """Made by `ClaudeSdkAdapter`; `open` before use."""

    def __init__(
        self,
        link: SdkLink,
        translator: ClaudeTranslator,
        initialize: Obj,
        decisions: Decisions,
        files: Sequence[Path] = (),
        *,
        mail: TeamMail,
    ) -> None:
        super().__init__(link, translator, initialize, files, mail=mail)
        self._sdk = link
        self._decisions = decisions

    async def open(self, thinking: Thinking | None = None) -> None:
        """As the Claude adapter's. Raises the same."""
        try:
            try:
                async with asyncio.timeout(claude.START_DEADLINE):
                    await self._sdk.connect()
            except TimeoutError as error:
                raise TrunklineError(
                    "timeout", f"the agent did not begin within {claude.START_DEADLINE:g} s"
                ) from error
            if thinking is not None:
                await self.set_thinking(thinking)
        except TrunklineError as error:
            raise self._failed(await self.close(grace=0), error) from error
        except BaseException:
            await self.close(grace=0)
            raise

    async def decide(self, ask: str, decision: AskDecided) -> None:
        waiting = self._translator.open_ask(ask)
        if waiting is None or waiting.kind == "form":
            await super().decide(ask, decision)
            return
        self._decisions.decide(text(waiting.request, "tool_use_id") or "", replies.decision(waiting, decision))

    async def pending(self) -> set[str] | None:
        # A second `initialize` would be one without the SDK's hooks; its callbacks are in this process.
        return self._translator.open_asks()

    async def _serve(self, message: Obj) -> None:
        subtype = text(obj(message, "request"), "subtype")
        if text(message, "type") != "control_request" or subtype == "request_user_dialog":
            await super()._serve(message)
