import asyncio

import aiohttp
from prometheus_client import CollectorRegistry, Counter, Histogram

from trunkline_service import Health, HealthServer


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as http, http.get(url) as answer:
        return answer.status, await answer.text()


async def test_ready_needs_the_word_of_the_service_and_all_checks() -> None:
    health = Health("gateway", "1.0.0")
    wrong: list[str] = []
    health.add("store", lambda: wrong[0] if wrong else None)
    async with HealthServer(health, CollectorRegistry()) as server:
        status, text = await get(f"{server.url}/ready")
        assert (status, '"status":"starting"' in text) == (503, True)
        health.set_ready()
        assert (await get(f"{server.url}/ready"))[0] == 200
        wrong.append("no room")
        status, text = await get(f"{server.url}/ready")
        assert (status, '"store":"no room"' in text) == (503, True)
        # The process itself lives: a probe that restarts it would not help.
        assert (await get(f"{server.url}/health"))[0] == 200


async def test_a_check_that_hangs_or_fails_is_a_finding() -> None:
    health = Health("x", "1.0.0")
    health.set_ready()

    async def hangs() -> str | None:
        await asyncio.Event().wait()
        return None

    def fails() -> str | None:
        raise OSError("disk gone")

    health.add("hangs", hangs)
    health.add("fails", fails)
    ready, body = await health.report()
    assert not ready
    assert body["checks"] == {"hangs": "no answer in 2 s", "fails": "disk gone"}


async def test_metrics_of_the_registry_are_served() -> None:
    registry = CollectorRegistry()
    Counter("things_total", "Things.", registry=registry).inc(3)
    async with HealthServer(Health("x", "1.0.0"), registry) as server:
        status, text = await get(f"{server.url}/metrics")
    assert status == 200
    assert "things_total 3.0" in text


async def test_who_asks_for_openmetrics_gets_exemplars() -> None:
    registry = CollectorRegistry()
    Histogram("seconds", "Seconds.", registry=registry).observe(0.2, {"trace_id": "ab" * 16})
    async with HealthServer(Health("x", "1.0.0"), registry) as server, aiohttp.ClientSession() as http:
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        async with http.get(f"{server.url}/metrics", headers=accept) as answer:
            text = await answer.text()
            assert answer.content_type == "application/openmetrics-text"
        assert f'# {{trace_id="{"ab" * 16}"}} 0.2' in text
        assert "trace_id" not in (await get(f"{server.url}/metrics"))[1]
        assert "_created" not in text


async def test_a_taken_port_is_no_reason_not_to_work() -> None:
    async with HealthServer(Health("a", "1.0.0"), CollectorRegistry()) as first:
        port = int(first.url.rpartition(":")[2])
        async with HealthServer(Health("b", "1.0.0"), CollectorRegistry(), port=port) as second:
            assert second.url != first.url
            assert '"service":"b"' in (await get(f"{second.url}/health"))[1]
