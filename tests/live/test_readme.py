"""The README is run: its programs print a session's facts, deltas and asks; its commands exist."""

import asyncio
import os
import re
import sys
from pathlib import Path

import click
import pytest
from tests.node.install import node_modules

from trunkline_testkit.product import Product, running

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def program(name: str) -> str:
    found = re.search(rf"<!-- program: {name} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


SEEN = ["message.user", "message.delta", "message.assistant", "permission.requested", "ask.decided", "turn.completed"]


def missing(text: str) -> list[str]:
    return [kind for kind in SEEN if f"{kind} " not in text]


async def printed(product: Product, command: list[str], cwd: Path) -> str:
    """What a program prints of a session in which one turn streams text and asks."""
    async with await product.client() as client:
        session = (await client.call("session.create", adapter="demo", cwd=str(product.home)))["session"]
        await client.call("subscribe", session=session)
        process = await asyncio.create_subprocess_exec(
            *command,
            session,
            cwd=cwd,
            env=product.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        lines: list[str] = []
        try:
            async with asyncio.timeout(60):
                # a program that has only just started may not be subscribed yet: prompt until it prints
                number = 0
                while missing("".join(lines)):
                    number += 1
                    await client.call("session.prompt", session=session, text="slow 20; ask ls")
                    asked = await client.wait("permission.requested", count=number)
                    await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
                    await client.wait("turn.completed", count=number)
                    while True:
                        try:
                            line = await asyncio.wait_for(process.stdout.readline(), 1)
                        except TimeoutError:
                            break
                        assert line, f"the program ended: {''.join(lines)}"
                        lines.append(line.decode())
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
    return "".join(lines)


async def test_the_programs(tmp_path: Path) -> None:
    python = tmp_path / "watch.py"
    python.write_text(program("nats-py"))
    assert len([line for line in python.read_text().splitlines() if line.strip()]) <= 10
    folder = await asyncio.to_thread(node_modules)
    npm = folder / f"watch-{os.getpid()}.mjs"
    npm.write_text(program("npm"))
    try:
        async with running(tmp_path / "home") as product:
            for command, cwd in (([sys.executable, str(python)], tmp_path), (["node", str(npm)], folder)):
                assert missing(await printed(product, command, cwd)) == []
    finally:
        npm.unlink()


def test_the_commands_exist() -> None:
    from trunkline_cli.root import cli

    used = set(re.findall(r"^trunkline (?:--host \S+ )?([\w-]+)", README, re.MULTILINE)) | set(
        re.findall(r"`trunkline (?:--host \S+ )?([\w-]+)", README)
    )
    assert len(used) >= 8
    context = click.Context(cli)
    assert {name for name in used if cli.get_command(context, name) is None} == set()


@pytest.mark.parametrize("recipe", re.findall(r"\.venv/bin/just (\w+)", README))
def test_the_recipes_exist(recipe: str) -> None:
    assert re.search(rf"^{recipe}\b.*:", (ROOT / "Justfile").read_text(), re.MULTILINE)
