"""An adapter without NATS: the README's ten lines, run as they stand there."""

import asyncio
import os
import sys
from pathlib import Path

README = Path(__file__).parents[3] / "libs" / "trunkline_agentkit" / "README.md"


def snippet(heading: str) -> str:
    """The first Python block below a heading."""
    return README.read_text().partition(heading)[2].partition("```python\n")[2].partition("```")[0]


async def test_the_readmes_ten_lines_run_an_agent_without_a_log(tmp_path: Path) -> None:
    program = await asyncio.to_thread(snippet, "## An agent in ten lines, without a log")
    body = program.partition("async def main():\n")[2].partition("\n\n")[0]
    assert len(body.splitlines()) <= 10
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.decode().split() == ["session.initialized", "turn.started", "message.assistant", "turn.completed"]
