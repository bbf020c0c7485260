"""The part of the contract about trouble: a model API that fails, messages of next year, claims that are not true."""

import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline_agentkit.contract.base import ContractBase, More
from trunkline_agentkit.contract.talk import Talk, data_of
from trunkline_agentkit.process import AgentProcess
from trunkline_agentkit.protocol import Configurable, Interruptible, Launch, PermissionHandler
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities, SessionInitialized
from trunkline_wire.turn import TurnCompleted
from trunkline_wire.work import NativeMessage

_CLAIMS: dict[str, str] = {
    "ask": "permissions",
    "question": "questions",
    "interrupt": "interrupt",
    "resume": "resume",
    "plan": "plans",
    "streaming": "streaming",
}
"""What is exempt must not be claimed, and what is claimed not exempt: name of the exemption, capability."""


class TroubleContract(ContractBase):
    @pytest.mark.parametrize("trouble", ["err400", "err401", "err429", "err500", "drop"])
    async def test_trouble_with_the_model_ends_the_turn_and_not_the_session(
        self, tmp_path: Path, trouble: More, record_property: Callable[[str, object], None]
    ) -> None:
        """The turn ends as an error, or goes on trying until an interrupt ends it; then the next one works."""
        self.unless_exempt(trouble)
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts[trouble])
            how = await self._end_of_trouble(talk, trouble)
            record_property("how", how)
            assert (await talk.turn(self.prompts["say"])).outcome == "success"

    async def _end_of_trouble(self, talk: Talk, trouble: More) -> str:
        try:
            done = await talk.end_of_turn(self.trouble_patience)
        except pytest.fail.Exception:
            await talk.interrupt()
            done = await talk.end_of_turn()
            assert done.outcome in {"interrupted", "error"}
            return f"tries on, {done.outcome} when told to"
        if done.outcome == "error":
            assert done.error is not None
            assert done.error.message
            return f"error {done.error.code}"
        assert done.outcome == "success"
        assert trouble in self.recovers, "a turn that failed does not say so"
        return "it tries again, and the turn succeeds"

    async def test_a_message_of_next_year_does_no_harm(self, tmp_path: Path) -> None:
        """It comes from the program's own output, before anything else."""
        self.unless_exempt("messages")
        adapter = self.make_adapter()
        start = self.start(adapter, tmp_path)
        start = msgspec.structs.replace(start, launch=_speaking_first(start.launch, json.dumps(dict(self.unknown))))
        async with self.session(tmp_path, start) as talk:
            assert (await talk.turn(self.prompts["say"])).outcome == "success"
            unknown = [message for message in data_of(talk.facts, NativeMessage) if not message.known]
            assert len(unknown) == 1

    async def test_it_claims_what_it_can_do_and_no_more(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.turn(self.prompts["say"])
            claimed = talk.capabilities
            for name, capability in _CLAIMS.items():
                if name == "plan" and name not in (*self.prompts, *self.exempt):
                    continue  # nothing is said of it, and nothing proved
                assert (name in self.exempt) != getattr(claimed, capability), (
                    f"{capability} is claimed and exempt, or neither"
                )
            assert ("second" in self.exempt) != (claimed.steering or claimed.queueing)
            if claimed.interrupt:
                assert isinstance(talk.session, Interruptible)
            if claimed.permissions or claimed.questions or claimed.plans:
                assert isinstance(talk.session, PermissionHandler)
            if isinstance(talk.session, Configurable):
                await _refuses_what_it_does_not_claim(talk.session, claimed)
                await _does_what_it_claims(talk.session, data_of(talk.facts, SessionInitialized)[-1])
            assert data_of(talk.facts, TurnCompleted)[0].outcome == "success"


async def _refuses_what_it_does_not_claim(session: Configurable, claimed: Capabilities) -> None:
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "model_switching": lambda: session.set_model("m"),
        "mode_switching": lambda: session.set_mode("m"),
        "thinking": lambda: session.set_thinking("low"),
        "slash_commands": lambda: session.run_command("c", "", "cmd"),
        "compaction": lambda: session.compact(None, "cmd"),
        "rewind": lambda: session.rewind("cmd"),
        "native_protocol": lambda: session.native("m", {}),
    }
    for capability, call in calls.items():
        if not getattr(claimed, capability):
            with pytest.raises(TrunklineError) as refused:
                await call()
            assert (refused.value.code, refused.value.details.get("capability")) == ("unsupported", capability)


async def _does_what_it_claims(session: Configurable, initialized: SessionInitialized) -> None:
    claimed = initialized.capabilities
    if claimed.model_switching and initialized.models:
        await session.set_model(initialized.model or initialized.models[0].id)
    if claimed.mode_switching and initialized.modes:
        await session.set_mode(initialized.mode or initialized.modes[0].id)
    if claimed.thinking:
        await session.set_thinking("low")
    if claimed.native_protocol:
        # What the agent does not know it refuses in its own words.
        with contextlib.suppress(TrunklineError):
            await session.native("a-method-of-next-year", {})


def _speaking_first(launch: Launch, line: str) -> Launch:
    """Starts programs that print `line` before anything of their own."""

    async def start(
        argv: Sequence[str], *, cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> AgentProcess:
        speak = ["/bin/sh", "-c", 'printf "%s\\n" "$0"; exec "$@"', line]
        return await launch([*speak, *argv], cwd=cwd, environment=environment)

    return start
