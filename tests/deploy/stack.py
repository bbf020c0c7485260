"""Trunkline as Docker Compose runs it, for tests: built, started, killed part by part."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

from trunkline_testkit.product import Client

TREE = Path(__file__).parents[2]
FILES = ("docker-compose.yml", "tests/deploy/compose.yml")
SERVICES = ("nats", "gateway", "permissions", "projector", "teams", "worker")
"""What runs all the time."""


def missing() -> str | None:
    """Why there is no engine to run it with, or None."""
    if shutil.which("docker") is None:
        return "there is no `docker` on PATH"
    for needed in (["info"], ["compose", "version"]):
        done = subprocess.run(["docker", *needed], capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0 or "ERROR" in done.stderr:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            return f"`docker {' '.join(needed)}` says: {said[-1] if said else 'nothing'}"
    return None


class Stack:
    """A project of Compose with volumes of its own, on a port of its own. Methods raise AssertionError with the output.

    `more` are further files of Compose, which say more than those before them; `variables` are what they are told.
    """

    def __init__(
        self, name: str, port: int, more: Sequence[Path] = (), *, base: Sequence[str] = FILES, **variables: str
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._name = name
        self._files = [*(TREE / file for file in base), *more]
        own = {"TRUNKLINE_PORT": str(port), "TRUNKLINE_PROJECTS": "projects"}
        self._environment = {**os.environ, **own, **variables}

    async def compose(self, *arguments: str, within: float = 120) -> str:
        files = [word for file in self._files for word in ("-f", str(file))]
        project = ["--project-name", self._name, "--project-directory", str(self._files[0].parent)]
        return await self._docker("compose", *project, *files, *arguments, within=within)

    async def _docker(self, *arguments: str, within: float = 60) -> str:
        process = await asyncio.create_subprocess_exec(
            "docker",
            *arguments,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = (each.decode(errors="replace") for each in await asyncio.wait_for(process.communicate(), within))
        except TimeoutError:
            process.kill()
            await process.wait()
            raise AssertionError(f"docker {' '.join(arguments)} did not end within {within:g} s") from None
        shown = f"docker {' '.join(arguments)} ended with {process.returncode}:\n{out[-2000:]}\n{err[-4000:]}"
        assert process.returncode == 0, shown
        return out

    async def cli(self, *arguments: str) -> str:
        """The command line, as docs tell people to use it."""
        return await self.compose("exec", "-T", "gateway", "trunkline", *arguments)

    async def verify(self) -> str:
        """The check of the log: it fails where a promise is broken."""
        return await self.compose("exec", "-T", "projector", "trunkline", "verify")

    async def inspect(self, service: str) -> dict[str, Any]:
        (found,) = json.loads(await self._docker("inspect", self._container(service)))
        return found

    def _container(self, service: str) -> str:
        return f"{self._name}-{service}-1"

    async def kill(self, service: str) -> None:
        await self._docker("kill", self._container(service))

    async def start(self, service: str) -> None:
        await self._docker("start", self._container(service))

    async def healthy(self, *services: str, within: float = 120) -> None:
        """Waits until the health checks of all these pass."""
        deadline = time.monotonic() + within
        waiting = set(services)
        while waiting:
            for service in sorted(waiting):
                state = (await self.inspect(service))["State"]
                if state["Running"] and state["Health"]["Status"] == "healthy":
                    waiting.discard(service)
                elif time.monotonic() > deadline:
                    log = await self._docker("logs", "--tail", "40", self._container(service))
                    raise AssertionError(f"{service} did not get healthy: {json.dumps(state)[:3000]}\n{log}")
            await asyncio.sleep(0.5)

    async def client(self, within: float = 60) -> Client:
        """A client with the owner's token, as soon as the gateway answers."""
        deadline = time.monotonic() + within
        while True:
            try:
                token = await self.compose("exec", "-T", "gateway", "cat", "/var/lib/trunkline/token")
                return await Client.connect(self.url, headers={"Authorization": f"Bearer {token.strip()}"})
            except (AssertionError, OSError, aiohttp.ClientError):
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.5)
