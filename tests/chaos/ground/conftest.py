"""Disks of a test's own, small and gone with it; the product, and the rights of its administrator."""

import contextlib
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.product import Client, Product


class Disk:
    """A tmpfs of `size` MB at `path`."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self._ballast = path / "ballast"
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(path)], check=True)

    def fill(self) -> None:
        """Until not one block is left."""
        with self._ballast.open("ab", buffering=0) as file:
            piece = bytes(1024 * 1024)
            while piece:
                try:
                    written = file.write(piece)
                    piece = piece[: written or 0]
                except OSError:
                    piece = piece[: len(piece) // 2]

    def make_room(self) -> None:
        self._ballast.unlink()

    def gone(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], check=True)


def may_mount(directory: Path) -> bool:
    tried = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)], check=False, capture_output=True
    )
    if tried.returncode == 0:
        subprocess.run(["umount", str(directory)], check=True)
    return tried.returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 128 MB. Needs the right to mount: root, as in CI's container, or a user and mount namespace around the tests."""
    path = tmp_path / "disk"
    path.mkdir()
    if not may_mount(path):
        pytest.skip("no right to mount a tmpfs: run as root, or inside `unshare -Urm`")
    disk = Disk(path, 128)
    try:
        yield disk
    finally:
        disk.gone()


@pytest_asyncio.fixture
async def product(tmp_path: Path) -> AsyncIterator[Product]:
    """Not started; ended with the test."""
    product = Product(tmp_path / "home")
    try:
        yield product
    finally:
        if product.process is not None:
            await product.stop()


async def demo_session(client: Client, cwd: Path) -> str:
    """A session of the demo agent that is watched from its start."""
    session = (await client.call("session.create", adapter="demo", cwd=str(cwd)))["session"]
    await client.subscribe(session, start="start")
    return session


async def verified(product: Product, session: str) -> None:
    """`trunkline verify` finds nothing."""
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"


@contextlib.asynccontextmanager
async def as_administrator(product: Product) -> AsyncGenerator[Bus]:
    """A connection to the product's log with every right."""
    seed = product.trunkline_home / "nats" / "keys" / "admin.nk"
    async with Bus.open(BusSettings(url=product.state["nats"], seed_file=seed, name="test")) as bus:
        yield bus
