"""The demo agent with one more step: `zoo` starts every creature of `zoo.py`, and goes on when all of them are out."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from trunkline_adapters.demo.agent import Agent, main, parse

ZOO = Path(__file__).with_name("zoo.py")


class UnrulyAgent(Agent):
    async def step(self, step: str) -> None:
        word, *kinds = step.split()
        if word != "zoo":
            await super().step(step)
            return
        directory = Path(os.environ["UNRULY_DIR"])
        for kind in kinds:
            # All of them keep the descriptors of the agent, and with them the session's lock, until they close them.
            subprocess.Popen(  # noqa: ASYNC220 - it is quick, and asyncio would watch them
                [sys.executable, "-I", "-S", str(ZOO), kind, str(directory), os.environ["TRUNKLINE_SESSION"]],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                close_fds=False,
            )
        while not all((directory / kind).exists() for kind in kinds):  # noqa: ASYNC110 - other processes tell nobody
            await asyncio.sleep(0.02)
        await super().step("say out")


if __name__ == "__main__":
    asyncio.run(main(parse(sys.argv[1:]), UnrulyAgent))
