"""The TypeScript client: built strictly, and driven by a program of Node against the product."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.node.install import node_modules

from trunkline_gateway.client_schema import document
from trunkline_testkit.product import running
from trunkline_wire import encode

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "libs/trunkline_client_ts"


@pytest.fixture(scope="module")
def packages() -> Path:
    return node_modules(LIBRARY) / "node_modules"


def tsc(packages: Path, *arguments: str, cwd: Path) -> None:
    done = subprocess.run(
        [packages / ".bin/tsc", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout


def test_its_types_are_current(packages: Path) -> None:
    made = subprocess.run(
        ["node", LIBRARY / "generate.mjs", packages.parent],
        input=encode(document()),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert made.stdout.decode() == (LIBRARY / "src/generated.ts").read_text(), "run `just schema`"


@pytest.fixture
def program(packages: Path, tmp_path: Path) -> Path:
    """`tests/node/client.ts`, compiled against the built package as somebody else's program would be."""
    place = tmp_path / "program"
    package = place / "node_modules/trunkline-client"
    package.mkdir(parents=True)
    shutil.copy(LIBRARY / "package.json", package)
    tsc(packages, "-p", str(LIBRARY), "--outDir", str(package / "dist"), cwd=place)
    (place / "node_modules/ws").symlink_to(packages / "ws")
    (place / "package.json").write_text('{"type": "module"}')
    shutil.copy(ROOT / "tests/node/client.ts", place)
    shape = ("--target", "ES2022", "--module", "NodeNext", "--lib", "ES2023,DOM", "--types", "")
    tsc(packages, "--strict", "--noUncheckedIndexedAccess", *shape, "client.ts", cwd=place)
    return place / "client.js"


@pytest.mark.chaos
@pytest.mark.timeout(180)
async def test_a_program_of_node_over_a_kill_of_the_gateway(program: Path, tmp_path: Path) -> None:
    async with running(tmp_path / "home") as product:
        given = {"url": product.state["gateway"], "token": product.token, "cwd": str(tmp_path)}
        node = await asyncio.create_subprocess_exec(
            "node",
            "--experimental-websocket",
            program,
            json.dumps(given),
            env={"PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert node.stdout is not None
        assert node.stderr is not None
        try:
            async with asyncio.timeout(90):
                first = await node.stdout.readline()
                assert first == b"kill\n", first + await node.stderr.read()
                product.kill("gateway")
                out, err = await node.communicate()
        finally:
            if node.returncode is None:
                node.kill()
                await node.wait()
        assert node.returncode == 0, err.decode()
    seen: dict[str, Any] = json.loads(out)
    assert seen["seqs"] == list(range(1, len(seen["seqs"]) + 1))
    assert len(set(seen["ids"])) == len(seen["ids"])
    assert [notice for notice in seen["notices"] if notice in {"broken", "mended", "gap"}] == ["broken", "mended"]
    assert seen["late"]["seqs"] == seen["seqs"]
    assert seen["late"]["openings"] > 1
    assert seen["asks"] == 1
    assert seen["refused"] == "unknown_session"
    assert seen["said"] == [" ".join(f"word{number}" for number in range(40))]
    assert seen["tools"] == ["completed"]
