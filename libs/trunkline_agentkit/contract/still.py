"""The part of the contract that needs no agent: manifest, translation, refusals."""

from pathlib import Path
from typing import Any

import pytest

from trunkline_agentkit.contract.base import ContractBase
from trunkline_agentkit.contract.talk import assert_paired
from trunkline_agentkit.framing import Decoded, decode_line
from trunkline_agentkit.protocol import BackendAdapter, Context, Fact, Native
from trunkline_agentkit.replay import INCARNATION, SESSION, translate
from trunkline_agentkit.translation import translate as translate_message
from trunkline_wire import CATALOGUE, TrunklineError, encode
from trunkline_wire.commands import VERBS
from trunkline_wire.session import SessionOptions
from trunkline_wire.work import NativeMessage


class StillContract(ContractBase):
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
            assert_paired([event.data for event in events if event.lane is None])

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

    def _translate(self, adapter: BackendAdapter, line: bytes) -> Native:
        translator = adapter.translator(Context(session=SESSION, incarnation=INCARNATION, cwd="/"))
        decoded: Decoded = decode_line(line)
        return translate_message(translator, decoded, "test")
