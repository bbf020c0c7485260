"""What is larger than a message of the server may be: kept whole, shown by a reference, and never a lost connection."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.ground.conftest import as_administrator, demo_session, verified

from trunkline_bus.blobs import Blobs
from trunkline_bus.shrink import LIMIT
from trunkline_testkit.product import Client, Product
from trunkline_wire import TrunklineError, decode_json, subjects

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

MB = 1_000_000


def references(value: Any) -> list[dict[str, Any]]:
    """All blob references in it."""
    if isinstance(value, dict):
        if "sha256" in value:
            return [value]
        return [found for part in value.values() for found in references(part)]
    return [found for part in value for found in references(part)] if isinstance(value, list) else []


async def turn(client: Client, session: str, text: str) -> None:
    done = len(client.events("turn.completed", session))
    await client.call("session.prompt", session=session, text=text, within=60)
    ended = await client.wait("turn.completed", session=session, count=done + 1, within=90)
    assert ended["data"]["outcome"] == "success"


async def test_messages_prompts_and_deltas_of_any_size(product: Product, tmp_path: Path) -> None:
    await product.start()
    async with await product.client() as client:
        large, small = await demo_session(client, tmp_path), await demo_session(client, tmp_path)

        # The agent says 16 MB in one line: the log has a reference, the blob has every byte.
        await turn(client, large, f"big {16 * MB}")
        (said,) = client.events("message.assistant", large)
        texts = [found for found in references(said["data"]) if found["size"] >= 16 * MB]
        assert len(texts) == 1
        async with as_administrator(product) as admin:
            assert (await Blobs(admin).get(texts[0]["sha256"])).count(b"x") == 16 * MB

        # A word of 390 KB is streamed, and in its fact beside the agent's own line: only together are they too large.
        # (A client is spared the piece where the fact that ends its item overtook it, so it is looked up in its stream.)
        word = "y" * 390_000
        assert len(word) < LIMIT < 2 * len(word)
        await turn(client, large, f"say {word}")
        async with as_administrator(product) as admin:
            piece = await admin.js.get_last_msg(subjects.DELTAS, subjects.session_deltas(large))
            assert decode_json(piece.data or b"")["data"]["text"].strip() == word
        with pytest.raises(TrunklineError, match="too_large"):  # by name, before anything is sent
            await client.call("session.prompt", session=large, text="z" * 2 * MB)

        # Many fields of some size: a history that no longer fits a stored state.
        for number in range(8):
            await turn(client, large, f"say {number}{'w' * 100_000}")
        await turn(client, small, "say small")
        for session in (large, small):
            state = (await client.call("session.get", session=session))["state"]
            assert state["turn"] is None
    logs = "".join(path.read_text(errors="replace") for path in (product.trunkline_home / "logs").glob("*.log"))
    assert not re.search(r"maximum payload|delta\.too_large|Traceback", logs, re.IGNORECASE)
    assert "ended with status" not in product.output()
    await verified(product, large)
    await verified(product, small)
