"""A program on Node that leaves before all that it has written is out of its pipe, with what its profile loads into it."""

import asyncio
import os
import shutil
from pathlib import Path

import msgspec

from trunkline_adapters.headless import launch
from trunkline_adapters.headless.adapter import HeadlessAdapter
from trunkline_adapters.headless.profiles import PROFILES
from trunkline_agentkit import local_start

SIZE = 3_000_000
SCRIPT = (
    f"process.stdout.write('ä'.repeat({SIZE // 2}), () => console.log('written')); setTimeout(() => process.exit(7))"
)


def _environment(tmp_path: Path, agent: str) -> dict[str, str]:
    source = {"PATH": os.environ["PATH"]}
    start = local_start(HeadlessAdapter(source), tmp_path, source=source, agent=agent, temporary=tmp_path)
    return launch.environment(start, PROFILES.shipped[agent], source)


async def test_all_that_it_has_written_arrives(tmp_path: Path) -> None:
    """Without it 64 KiB would: what the pipe holds."""
    node = shutil.which("node")
    assert node is not None, "node is not on PATH: install Node 20 or newer"
    process = await asyncio.create_subprocess_exec(
        node, "-e", SCRIPT, stdout=asyncio.subprocess.PIPE, env=_environment(tmp_path, "continue")
    )
    assert process.stdout is not None
    said = await process.stdout.read()
    assert await process.wait() == 7
    assert said.endswith(b"written\n")
    assert len(said) == SIZE + len(b"written\n")


def test_only_agents_whose_profile_says_so_get_it(tmp_path: Path) -> None:
    assert "NODE_OPTIONS" in _environment(tmp_path, "qwen")
    assert "BUN_OPTIONS" in _environment(tmp_path, "cline")
    assert not {"NODE_OPTIONS", "BUN_OPTIONS"} & set(_environment(tmp_path, "gemini"))


def test_the_options_of_a_session_come_first(tmp_path: Path) -> None:
    source = {"PATH": os.environ["PATH"]}
    start = local_start(HeadlessAdapter(source), tmp_path, source=source, agent="qwen", temporary=tmp_path)
    start = msgspec.structs.replace(start, environment={**start.environment, "NODE_OPTIONS": "--no-warnings"})
    assert launch.environment(start, PROFILES.shipped["qwen"], source)["NODE_OPTIONS"] == "--no-warnings"
