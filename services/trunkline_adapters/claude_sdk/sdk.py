"""The SDK in this process, between the session and the CLI: it introduces itself, asks its callbacks and runs hooks.

It reads what is meant for it, the messages of its control protocol; the session reads the lines themselves, of which the SDK's
own parser drops many kinds. All goes over a process of ours, so that the CLI lives and dies as every agent does.
"""

import asyncio
import importlib
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from trunkline_agentkit import AgentProcess, Exit, decode_line
from trunkline_agentkit.fields import Obj, obj, text
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

PATH_VARIABLE: Final = "TRUNKLINE_CLAUDE_SDK_PATH"
"""A folder with the package, where it is not installed beside Trunkline."""
_PACKAGE: Final = "claude_agent_sdk"
_DISCONNECT_S: Final = 5.0


def load(source: Mapping[str, str], install: str) -> Any:
    """The SDK's module. Raises TrunklineError `agent_not_found`, saying how to install it."""
    folder = source.get(PATH_VARIABLE)
    if folder and folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module(_PACKAGE)
    except ImportError as error:
        raise TrunklineError(
            "agent_not_found",
            f"the package claude-agent-sdk can't be imported ({error}): {install}, or name a folder that has it in {PATH_VARIABLE}",
        ) from error


def bundled(sdk: Any) -> Path:
    """The CLI that the SDK brings."""
    return Path(sdk.__file__).parent / "_bundled" / "claude"


class SdkLink:
    """A `Link` to the CLI with the SDK in between. `connect` before use.

    `introduction` is what our own `initialize` request would hold: it is added to the SDK's. `written` is told of the messages
    that the SDK sends by itself.
    """

    def __init__(
        self, sdk: Any, options: Any, process: AgentProcess, introduction: Obj, written: Callable[[Obj], object]
    ) -> None:
        self._process = process
        self._introduction = introduction
        self._written = written
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)
        self._reading = False
        self._connected = False
        self._over = asyncio.Event()
        self._client = sdk.ClaudeSDKClient(options, transport=_transport(sdk, self))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.running

    async def connect(self) -> None:
        """Waits until the CLI has answered the SDK. Raises TrunklineError `agent_failed`."""
        try:
            await self._client.connect()
        except Exception as error:
            raise TrunklineError("agent_failed", f"the Agent SDK could not begin: {error}") from error
        self._connected = True

    async def lines(self) -> AsyncIterator[bytes]:
        while (line := await self._said.get()) is not None:
            yield line

    async def write_line(self, message: object) -> None:
        if not isinstance(message, dict) or message.get("type") != "user":
            await self._process.write_line(message)
            return
        try:
            await self._client.query(_alone(message))
        except TrunklineError:
            raise
        except Exception as error:
            raise TrunklineError(
                "agent_failed", f"the Agent SDK takes no more prompts ({error}): send a prompt to start it again"
            ) from error

    async def close(self, grace: float = 5.0) -> Exit:
        end = await self._process.close(grace)
        if not self._reading:
            await self._finish()
        await self._over.wait()
        try:
            async with asyncio.timeout(_DISCONNECT_S):
                await self._client.disconnect()
        except Exception as error:  # noqa: BLE001  # the CLI is gone, whatever the SDK thinks of it
            log.info("sdk_disconnect", extra={"error": type(error).__name__})
        return end

    async def read(self) -> AsyncIterator[Obj]:
        """For the SDK: what it has to act on. Every line goes to `lines` first."""
        self._reading = True
        try:
            async for line in self._process.lines():
                await self._said.put(line)
                if b'"control_' in line and (message := decode_line(line).message) is not None and _for_sdk(message):
                    yield message
        finally:
            await self._finish()
        if not self._connected:
            # Otherwise the SDK waits for its answer until its own deadline.
            raise ConnectionError("the CLI has ended")

    async def write(self, data: str) -> None:
        """For the SDK: sends one line of it."""
        message: Obj = json.loads(data)
        if text(obj(message, "request"), "subtype") == "initialize":
            message["request"] |= {name: value for name, value in self._introduction.items() if name != "subtype"}
        if text(message, "type") != "user":
            self._written(message)
        await self._process.write_line(message)

    def close_input(self) -> None:
        self._process.close_input()

    async def _finish(self) -> None:
        if not self._over.is_set():
            self._over.set()
            await self._said.put(None)


def _for_sdk(message: Obj) -> bool:
    # It knows no forms of MCP servers and would refuse them: people answer those.
    return text(message, "type") in {"control_request", "control_response", "control_cancel_request"} and text(
        obj(message, "request"), "subtype"
    ) not in {"elicitation", "request_user_dialog"}


async def _alone(message: Obj) -> AsyncIterator[Obj]:
    yield message


def _transport(sdk: Any, link: SdkLink) -> Any:
    """The SDK's own kind of transport, which can be declared only once it is imported."""

    class Transport(sdk.Transport):
        async def connect(self) -> None:
            pass  # the process runs already

        async def write(self, data: str) -> None:
            await link.write(data)

        def read_messages(self) -> AsyncIterator[Obj]:
            return link.read()

        async def close(self) -> None:
            pass  # `SdkLink.close` does it

        def is_ready(self) -> bool:
            return link.running

        async def end_input(self) -> None:
            link.close_input()

    return Transport()
