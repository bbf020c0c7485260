"""The contract suite against a fake of a terminal program, in a real pseudo-terminal."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
from tests.unit.pty.recorded import CASES

from trunkline_adapters.pty.adapter import PtyAdapter
from trunkline_agentkit import BackendAdapter, Start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_wire.session import SessionOptions

HERE = Path(__file__).parent


class TestPty(AdapterContract):
    adapter_name = "pty"
    prompts: ClassVar[Mapping[Any, str]] = {
        name: name for name in ("say", "long", "slow", "huge", "ask", "crash", "err401", "err500")
    }
    exempt: ClassVar[Mapping[Any, str]] = {
        "question": "a dialog with text to type is told as no question",
        "tool": "a screen shows what a tool prints, and not where it begins and ends",
        "change": "a dialog takes keys, no other input",
        "plan": "a screen shows no plan as such",
        "streaming": "a terminal writes over what it has written: its screen is streamed, not a text",
        "second": "what is typed while it works goes to whatever reads it: prompts wait in Trunkline",
        "resume": "a program begins anew with each start",
    }
    said = "Hello from the stand-in"
    evidence = "asked"
    recordings: ClassVar[Sequence[Path]] = tuple(case / "native.cast" for case in CASES)

    def source(self, tmp_path: Path) -> dict[str, str]:
        path = f"{HERE}:{os.environ.get('PATH', os.defpath)}"
        return {**super().source(tmp_path), "PATH": path, "TRUNKLINE_PTY_PROFILES": str(HERE / "pty_profiles")}

    def make_adapter(self) -> BackendAdapter:
        return PtyAdapter(self.source(Path("/nowhere")))

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        return super().start(adapter, tmp_path, behaviour, agent="stand-in", **fields)


class TestPtyInTmux(TestPty):
    """The same program, held by tmux."""

    def options(self) -> SessionOptions:
        return SessionOptions(hold="tmux")

    @pytest.fixture(autouse=True)
    def _nothing_is_left(self) -> Iterator[None]:
        self.temporary = Path(tempfile.mkdtemp(prefix="tl-"))  # short, for tmux's socket
        yield
        mine = [process for process in psutil.process_iter() if str(self.temporary) in _line(process)]
        _, left = psutil.wait_procs(mine, timeout=5)  # what has its signal needs a moment
        shutil.rmtree(self.temporary)
        assert left == []

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        return super().start(adapter, tmp_path, behaviour, temporary=self.temporary, **fields)


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
