"""Prometheus and Alertmanager beside Trunkline, as deploy/docker/observability.yml starts them with the files of this tree: both
take what they are told, every part is scraped, and one that is gone is told of. `just compose-test` runs it.
"""

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from tests.deploy.stack import SERVICES, TREE, Stack, missing

from trunkline_testkit import eventually
from trunkline_testkit.ports import free_port

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="module")]

LAYER = TREE / "deploy" / "docker" / "observability.yml"
WATCHERS = ("prometheus", "alertmanager")
SCRAPED = {*SERVICES, "monitor"} - {"nats"}


class Watched:
    """The stack, and what the two that watch it say."""

    def __init__(self, stack: Stack, ports: dict[str, int]) -> None:
        self.stack = stack
        self._ports = ports

    async def ask(self, who: str, path: str) -> Any:
        url = f"http://127.0.0.1:{self._ports[who]}/api/{path}"
        async with aiohttp.ClientSession() as http, http.get(url) as answer:
            answer.raise_for_status()
            return json.loads(await answer.text())

    async def targets(self) -> dict[str, str]:
        found = (await self.ask("prometheus", "v1/targets"))["data"]["activeTargets"]
        return {one["labels"]["job"]: one["health"] for one in found}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched() -> AsyncGenerator[Watched]:
    if reason := missing():
        pytest.skip(f"needs a running Docker with Compose: {reason}")
    ports = {who: free_port() for who in WATCHERS}
    variables = {f"TRUNKLINE_{who.upper()}_PORT": str(port) for who, port in ports.items()}
    stack = Stack("trunkline-test-layer", free_port(), [LAYER], **variables)
    await stack.compose("down", "--volumes", "--timeout", "5")
    try:
        await stack.compose("build", "monitor", "worker", within=900)
        await stack.compose("up", "--detach", *SERVICES, "monitor", *WATCHERS, within=300)
        await stack.healthy(*SERVICES, "monitor")
        yield Watched(stack, ports)
    finally:
        await stack.compose("down", "--volumes", "--timeout", "20")


async def test_every_part_is_scraped_and_every_rule_can_be_judged(watched: Watched) -> None:
    async def up() -> bool:
        return await watched.targets() == dict.fromkeys(SCRAPED, "up")

    await eventually(up, 90, interval=1, ignore=(aiohttp.ClientError, OSError))
    wanted: set[str] = set()
    for file in (TREE / "deploy" / "prometheus" / "rules").glob("*.yml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            wanted |= {rule.get("alert") or rule["record"] for rule in group["rules"]}

    async def judged() -> bool:
        groups = (await watched.ask("prometheus", "v1/rules"))["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert {rule["name"] for rule in rules} == wanted
        assert not [rule for rule in rules if rule.get("lastError")]
        return all(rule["health"] == "ok" for rule in rules)

    await eventually(judged, 60, interval=1)


async def test_their_own_tools_take_the_files_where_they_are_mounted(watched: Watched) -> None:
    for who, words in (("prometheus", ["promtool", "check", "config"]), ("alertmanager", ["amtool", "check-config"])):
        said = await watched.stack.compose("exec", "-T", who, *words, f"/etc/{who}/{who}.yml")
        assert "SUCCESS" in said
    (manager,) = (await watched.ask("prometheus", "v1/alertmanagers"))["data"]["activeAlertmanagers"]
    assert re.fullmatch(r"http://alertmanager:9093/api/v\d/alerts", manager["url"])


async def test_a_part_that_is_gone_is_told_of(watched: Watched) -> None:
    """No target is left that could be down: its name leads nowhere any more."""
    await watched.stack.compose("stop", "teams")

    async def told() -> bool:
        alerts = [one["labels"] for one in await watched.ask("alertmanager", "v2/alerts")]
        return {"alertname": "TrunklineServiceDown", "job": "teams", "severity": "critical"} in alerts

    await eventually(told, 300, interval=1)
    assert "teams" not in await watched.targets()
