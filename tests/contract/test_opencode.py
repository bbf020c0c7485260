"""The OpenCode adapter over its real transport, against a fake server that speaks the native protocol."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from trunkline_adapters.opencode.adapter import OpenCodeAdapter
from trunkline_agentkit import BackendAdapter
from trunkline_agentkit.contract import AdapterContract, Behaviour, More

STAND_IN = Path(__file__).parent / "opencode_stand_in.py"


class TestOpenCode(AdapterContract):
    adapter_name = "opencode"
    prompts: ClassVar[Mapping[Behaviour | More, str]] = {
        "say": "hello there",
        "long": "long",
        "ask": "ask ls",
        "question": "question",
        "crash": "die 3",
        "slow": "slow",
        "huge": "huge 1000000",
        "tool": "ask ls",
        "err400": "err400",
        "err401": "err401",
        "err429": "err429",
        "err500": "err500",
        "drop": "drop",
    }
    exempt: ClassVar[Mapping[Any, str]] = {"change": "the agent runs what its model wrote, or nothing"}
    unknown: ClassVar[Mapping[str, Any]] = {"sse": "/event", "data": {"type": "thing.of.next.year", "properties": {}}}
    said = "hello there"
    tool_output = "done"

    def make_adapter(self) -> BackendAdapter:
        return OpenCodeAdapter(self._source())

    def source(self, tmp_path: Path) -> dict[str, str]:
        return self._source() | {"HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def _source(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "TRUNKLINE_PROGRAM_OPENCODE": str(STAND_IN)}
