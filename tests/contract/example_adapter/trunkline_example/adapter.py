"""All of an adapter in one file: what Trunkline needs to know about an agent that only repeats what it hears."""

from collections.abc import AsyncIterator
from typing import Any

from trunkline_agentkit import (
    AgentProcess,
    Context,
    Exit,
    Fact,
    Installed,
    Native,
    Out,
    Start,
    UserPrompt,
    decode_line,
    find_program,
    kind_of,
    load_manifest,
    refuse_options,
    translate,
)
from trunkline_wire.blocks import TextBlock, join_text
from trunkline_wire.ids import item_id
from trunkline_wire.session import Capabilities, SessionInitialized
from trunkline_wire.turn import MessageAssistant, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage

CAPABILITIES = Capabilities(queueing=True)


class ExampleTranslator:
    def __init__(self, context: Context) -> None:
        self._context = context

    def sent(self, message: dict[str, Any]) -> list[Out]:  # noqa: ARG002  # what it hears is what it says
        return []

    def feed(self, message: dict[str, Any]) -> list[Out]:
        match message:
            case {"type": "hello"}:
                return [Fact(data=SessionInitialized(capabilities=CAPABILITIES))]
            case {"type": "prompt", "id": str(command), "text": str(text)}:
                item = item_id(self._context.session, self._context.incarnation, f"answer to {command}")
                return [
                    Fact(data=TurnStarted(number=0), cause=command),
                    Fact(data=MessageAssistant(content=[TextBlock(text=text)]), item=item),
                    Fact(data=TurnCompleted(outcome="success")),
                ]
            case _:
                return [Fact(data=NativeMessage(known=False, kind=kind_of(message), reason="unknown_type"))]


class ExampleSession:
    def __init__(self, process: AgentProcess, translator: ExampleTranslator) -> None:
        self._process = process
        self._translator = translator

    async def send(self, prompt: UserPrompt) -> None:
        await self._process.write_line({"type": "prompt", "id": prompt.command, "text": join_text(prompt.content)})

    async def messages(self) -> AsyncIterator[Native]:
        async for line in self._process.lines():
            decoded = decode_line(line)
            yield translate(self._translator, decoded, kind_of(decoded.message))

    async def close(self, grace: float = 5.0) -> Exit:
        return await self._process.close(grace)


class ExampleAdapter:
    name = "example"
    capabilities = CAPABILITIES

    def __init__(self) -> None:
        self.manifest = load_manifest("trunkline_example")

    def translator(self, context: Context) -> ExampleTranslator:
        return ExampleTranslator(context)

    async def create(self, start: Start) -> ExampleSession:
        refuse_options(self, start.options)
        process = await start.launch([find_program(self.manifest)])
        await process.write_line({"type": "hello"})
        return ExampleSession(process, self.translator(start.context))

    async def resume(self, start: Start) -> ExampleSession:
        return await self.create(start)

    async def probe(self) -> Installed:
        return Installed(path=find_program(self.manifest))

    async def close(self) -> None:
        pass
