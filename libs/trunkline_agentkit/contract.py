"""The contract suite: what every adapter must do, as tests to inherit.

    from trunkline_agentkit.contract import AdapterContract

    class TestMyAdapter(AdapterContract):
        adapter_name = "mine"
        prompts = {"say": "…", "long": "…", "ask": "…"}
        exempt = {"question": "the agent never asks"}

It runs the adapter against a real process over the real transport, without a log. `prompts` are texts that make the
agent do a thing; what an agent can't do is exempt, with a reason. Needs pytest, pytest-asyncio and pytest's `tmp_path`.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import pytest

from trunkline_agentkit.environment import INCARNATION_MARK
from trunkline_agentkit.framing import Decoded, decode_line
from trunkline_agentkit.local import local_start
from trunkline_agentkit.protocol import (
    BackendAdapter,
    BackendSession,
    Context,
    Fact,
    Interruptible,
    Native,
    Out,
    PermissionHandler,
    Piece,
    Start,
    UserPrompt,
)
from trunkline_agentkit.recorder import read_recording
from trunkline_agentkit.registry import load
from trunkline_agentkit.replay import INCARNATION, SESSION, translate
from trunkline_agentkit.sweep import end_family, marked
from trunkline_agentkit.translation import translate as translate_message
from trunkline_wire import CATALOGUE, Data, TrunklineError, encode
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested, QuestionAsked
from trunkline_wire.blocks import TextBlock, join_text
from trunkline_wire.commands import VERBS
from trunkline_wire.ids import new_command_id
from trunkline_wire.session import Capabilities, SessionInitialized, SessionOptions
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage

Behaviour = Literal["say", "long", "ask", "question", "crash"]
"""`say`: answers with a text. `long`: streams for many seconds. `ask`: asks for permission to run a tool. `question`: asks
its user. `crash`: ends the program in mid-turn."""

PATIENCE = 60.0
"""Seconds that one step of a test may take."""


class AdapterContract:
    adapter_name: ClassVar[str]
    prompts: ClassVar[Mapping[Behaviour, str]]
    exempt: ClassVar[Mapping[Behaviour | Literal["resume", "interrupt"], str]] = {}
    recordings: ClassVar[Sequence[Path]] = ()
    """Recordings to translate, in the form that the recorder writes."""
    unknown: ClassVar[Mapping[str, Any]] = {"type": "a-type-of-next-year", "value": 1}
    """A message of a type that nobody knows yet."""

    def make_adapter(self) -> BackendAdapter:
        """The adapter, by its entry point."""
        return load(self.adapter_name)

    def source(self, tmp_path: Path) -> dict[str, str]:
        """The environment that the agent's is taken from; HOME is private."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def options(self) -> SessionOptions:
        return SessionOptions()

    def start(self, adapter: BackendAdapter, tmp_path: Path, **fields: Any) -> Start:
        """A Start whose traffic is recorded in `tmp_path/native.jsonl`."""
        return local_start(
            adapter,
            tmp_path,
            options=fields.pop("options", self.options()),
            source=self.source(tmp_path),
            recording=fields.pop("recording", tmp_path / "native.jsonl"),
            temporary=tmp_path,
            **fields,
        )

    # What can be said without an agent

    def test_the_manifest_is_true(self) -> None:
        adapter = self.make_adapter()
        assert adapter.name == adapter.manifest.name == self.adapter_name
        assert set(adapter.capabilities.options) <= set(SessionOptions.__struct_fields__)
        assert set(adapter.manifest.emulated) <= set(VERBS)
        assert set(adapter.manifest.lossless) <= set(CATALOGUE)
        assert adapter.manifest.title
        assert adapter.manifest.protocol

    def test_exemptions_have_reasons_and_prompts(self) -> None:
        for behaviour in ("say", "long", "ask", "question", "crash"):
            assert (behaviour in self.prompts) != (behaviour in self.exempt), f"{behaviour!r}: a prompt or a reason"
        assert all(reason.strip() for reason in self.exempt.values())

    def test_an_unknown_message_is_kept_as_unknown(self) -> None:
        adapter = self.make_adapter()
        native = self._translate(adapter, encode(self.unknown))
        (fact,) = [out for out in native.out if isinstance(out, Fact)]
        assert isinstance(fact.data, NativeMessage)
        assert not fact.data.known

    def test_a_message_with_nothing_in_it_does_no_harm(self) -> None:
        adapter = self.make_adapter()
        for line in (b"{}", b"[]", b"null", b"7", b'"text"', b"*** banner ***", b"\xff\xfe", b'{"type":null}'):
            native = self._translate(adapter, line)
            assert any(isinstance(out, Fact) for out in native.out) or not native.out

    def test_recordings_translate_the_same_each_time_and_lose_nothing(self) -> None:
        adapter = self.make_adapter()
        for path in self.recordings:
            events, problems = translate(adapter, path)
            again, _ = translate(adapter, path)
            raised = [problem for problem in problems if (problem.reason or "").startswith("translate_error")]
            assert raised == [], f"{path.name}: messages without a translation"
            assert [encode(event) for event in events] == [encode(event) for event in again], path.name
            lines = [event.origin[0] for event in events if event.origin is not None]
            assert sorted(set(lines)) == list(range(1, len(set(lines)) + 1)), f"{path.name}: a gap in the numbering"
            _assert_paired([event.data for event in events if event.lane is None])

    # What takes an agent

    async def test_it_is_installed(self) -> None:
        adapter = self.make_adapter()
        installed = await adapter.probe()
        assert await asyncio.to_thread(os.access, installed.path, os.X_OK)
        await adapter.close()

    async def test_a_prompt_becomes_one_turn(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            command = await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            started = _only(out, TurnStarted)
            assert started.cause == command
            assert cast("TurnStarted", started.data).trigger == "prompt"
            assert _data(out, TurnCompleted)[0].outcome == "success"
            initialized = _data(talk.facts, SessionInitialized)
            assert initialized, "the session must be initialized before its first turn is over"
            assert initialized[0].capabilities != Capabilities()
            messages = [fact for fact in out if isinstance(fact, Fact) and isinstance(fact.data, MessageAssistant)]
            text = "".join(join_text(cast("MessageAssistant", fact.data).content) for fact in messages)
            assert text.strip()
            assert all(fact.item for fact in messages)
            if initialized[0].capabilities.streaming:
                streamed = "".join(one.text for one in out if isinstance(one, Piece) and one.kind == "text")
                assert streamed.strip() == text.strip(), "the pieces add up to the finished text"

            second = await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            assert _only(out, TurnStarted).cause == second

    async def test_every_line_comes_once_in_order_verbatim(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            natives = list(talk.natives)
        recorded = read_recording(tmp_path / "native.jsonl")
        spoken = [entry.raw for entry in recorded if entry.speaker == "agent"]
        assert [native.raw for native in natives] == spoken[: len(natives)]

    async def test_an_interrupt_ends_the_turn_and_not_the_agent(self, tmp_path: Path) -> None:
        self.unless_exempt("interrupt", "long")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["long"])
            await talk.until(TurnStarted)
            await talk.until(Piece)
            assert isinstance(talk.session, Interruptible)
            await talk.session.interrupt()
            await talk.until(TurnCompleted)
            assert _data(talk.facts, TurnCompleted)[0].outcome == "interrupted"
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            _assert_paired([fact.data for fact in talk.facts if fact.lane is None])

    @pytest.mark.parametrize("behaviour", ["allow", "deny"])
    async def test_a_decision_reaches_the_agent(self, tmp_path: Path, behaviour: Literal["allow", "deny"]) -> None:
        self.unless_exempt("ask")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["ask"])
            await talk.until(PermissionRequested)
            ask = _data(talk.facts, PermissionRequested)[0]
            assert ask.incarnation == talk.start.incarnation
            assert isinstance(talk.session, PermissionHandler)
            message = "No, thank you." if behaviour == "deny" else None
            await talk.session.decide(ask.ask, AskDecided(ask=ask.ask, behaviour=behaviour, by="test", message=message))
            await talk.until(TurnCompleted)
            (tool,) = [fact for fact in talk.facts if fact.item == ask.tool and isinstance(fact.data, ToolCompleted)]
            status = cast("ToolCompleted", tool.data).status
            assert status == ("completed" if behaviour == "allow" else "rejected")
            assert _data(talk.facts, ToolStarted)
            with pytest.raises(TrunklineError) as refused:
                await talk.session.decide(ask.ask, AskDecided(ask=ask.ask, behaviour="deny", by="test"))
            assert refused.value.code == "unknown_ask"

    async def test_an_answer_reaches_the_agent(self, tmp_path: Path) -> None:
        self.unless_exempt("question")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["question"])
            await talk.until(QuestionAsked)
            ask = _data(talk.facts, QuestionAsked)[0]
            question = ask.questions[0]
            answer = question.options[0].label if question.options else "yes"
            assert isinstance(talk.session, PermissionHandler)
            decision = AskDecided(ask=ask.ask, behaviour="answered", by="test", answers={question.id: answer})
            await talk.session.decide(ask.ask, decision)
            await talk.until(TurnCompleted)
            assert _data(talk.facts, TurnCompleted)[0].outcome == "success"
            assert _data(talk.facts, AskWithdrawn) == []

    async def test_a_resumed_session_goes_on(self, tmp_path: Path) -> None:
        self.unless_exempt("resume")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            native = _data(talk.facts, SessionInitialized)[-1].native_session
            session = talk.start.session
        assert native
        recording = tmp_path / "resumed.jsonl"
        async with self.session(tmp_path, session=session, native_session=native, recording=recording) as talk:
            command = await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            assert _only(out, TurnStarted).cause == command
            assert _data(out, TurnCompleted)[0].outcome == "success"

    async def test_closing_leaves_no_process(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            marks = {INCARNATION_MARK: talk.start.incarnation}
            assert await asyncio.to_thread(marked, marks)
            exit = await talk.session.close()
            assert await talk.session.close() == exit
            assert await asyncio.to_thread(marked, marks) == []
            with pytest.raises(TrunklineError) as refused:
                await talk.prompt(self.prompts["say"])
            assert refused.value.code == "agent_failed"

    async def test_a_killed_agent_ends_its_messages(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnStarted)
            for pid, _ in await asyncio.to_thread(marked, {INCARNATION_MARK: talk.start.incarnation}):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await talk.until_over()
            exit = await talk.session.close()
            assert exit.signal == signal.SIGKILL or exit.code not in {0, None}

    async def test_a_crash_in_mid_turn_tells_its_last_words(self, tmp_path: Path) -> None:
        self.unless_exempt("crash")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["crash"])
            await talk.until(TurnStarted)
            await talk.until_over()
            exit = await talk.session.close()
            assert exit.code != 0
            assert exit.stderr_tail.strip()

    async def test_options_that_it_can_not_honour_are_refused_by_name(self, tmp_path: Path) -> None:
        adapter = self.make_adapter()
        samples: dict[str, Any] = {
            "model": "m",
            "mode": "m",
            "thinking": "high",
            "system_prompt": "s",
            "allowed_tools": ["t"],
            "budget_usd": 1.0,
            "max_turns": 1,
            "output_schema": {"type": "object"},
            "agents": {"a": {}},
            "mcp_servers": {"m": {}},
        }
        lacking = {name: value for name, value in samples.items() if name not in adapter.capabilities.options}
        if lacking:
            with pytest.raises(TrunklineError) as refused:
                await adapter.create(self.start(adapter, tmp_path, options=SessionOptions(**lacking)))
            assert refused.value.code == "unsupported"
            assert set(refused.value.details["options"]) == set(lacking)
        await adapter.close()

    # Means

    def unless_exempt(self, *behaviours: Behaviour | Literal["resume", "interrupt"]) -> None:
        for behaviour in behaviours:
            if behaviour in self.exempt:
                pytest.skip(f"exempt: {self.exempt[behaviour]}")

    def _translate(self, adapter: BackendAdapter, line: bytes) -> Native:
        translator = adapter.translator(Context(session=SESSION, incarnation=INCARNATION, cwd="/"))
        decoded: Decoded = decode_line(line)
        return translate_message(translator, decoded, "test")

    @contextlib.asynccontextmanager
    async def session(self, tmp_path: Path, **fields: Any) -> "AsyncGenerator[Talk]":
        """A running agent that is ended with the block, whatever happens."""
        adapter = self.make_adapter()
        start = self.start(adapter, tmp_path, **fields)
        session = await (adapter.create if start.native_session is None else adapter.resume)(start)
        talk = Talk(start, session)
        try:
            yield talk
        finally:
            await session.close(grace=1.0)
            await talk.stop()
            await adapter.close()
            await end_family({INCARNATION_MARK: start.incarnation})


class Talk:
    """A conversation with an agent: `natives` is all it said, `facts` what that meant."""

    def __init__(self, start: Start, session: BackendSession) -> None:
        self.start = start
        self.session = session
        self.natives: list[Native] = []
        self._read = 0
        self._news = asyncio.Event()
        self._over = False
        self._task = asyncio.create_task(self._listen())

    @property
    def facts(self) -> list[Fact]:
        return [out for native in self.natives for out in native.out if isinstance(out, Fact)]

    async def prompt(self, text: str) -> str:
        command = new_command_id()
        await self.session.send(UserPrompt(command=command, content=[TextBlock(text=text)]))
        return command

    async def until(self, wanted: type[Data] | type[Piece]) -> list[Out]:
        """What came since the last call, up to and with the native message that brought `wanted`."""

        def found(out: Out) -> bool:
            return (
                isinstance(out, wanted) if wanted is Piece else isinstance(out, Fact) and isinstance(out.data, wanted)
            )

        return await self._until(lambda native: any(found(out) for out in native.out), wanted.__name__)

    async def until_over(self) -> None:
        """Until the agent's messages have ended."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        await asyncio.wait({self._task}, timeout=5.0)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _until(self, found: Callable[[Native], bool], what: str) -> list[Out]:
        out: list[Out] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    while self._read < len(self.natives):
                        native = self.natives[self._read]
                        self._read += 1
                        out += native.out
                        if found(native):
                            return out
                    if self._over:
                        break
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        pytest.fail(f"no {what} came; there were {[native.kind for native in self.natives]}")

    async def _listen(self) -> None:
        try:
            async for native in self.session.messages():
                self.natives.append(native)
                self._news.set()
        finally:
            self._over = True
            self._news.set()


def _data(out: Sequence[Out], kind: type[Any]) -> list[Any]:
    return [one.data for one in out if isinstance(one, Fact) and isinstance(one.data, kind)]


def _only(out: Sequence[Out], kind: type[Data]) -> Fact:
    (fact,) = [one for one in out if isinstance(one, Fact) and isinstance(one.data, kind)]
    return fact


def _assert_paired(data: Sequence[Data]) -> None:
    """Turns begin and end in alternation; a last one may be open."""
    turns = [type(one) for one in data if isinstance(one, TurnStarted | TurnCompleted)]
    assert turns == [TurnStarted if n % 2 == 0 else TurnCompleted for n in range(len(turns))]
