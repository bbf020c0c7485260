"""A real Prometheus (and promtool) of the machine's, for tests; `apt-get install prometheus` brings both."""

import asyncio
import json
import math
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
import pytest
import yaml

from trunkline_testkit import eventually
from trunkline_testkit.ports import free_port

MISSING: Final = "needs a real Prometheus: apt-get install --no-install-recommends prometheus"
needs_prometheus: Final = pytest.mark.skipif(shutil.which("prometheus") is None, reason=MISSING)
needs_promtool: Final = pytest.mark.skipif(shutil.which("promtool") is None, reason=MISSING)

Series = dict[str, Any]


class Prometheus:
    """Scrapes `targets` (job -> host:port) every second with the alerts of this repository. An async context manager."""

    def __init__(self, directory: Path, targets: dict[str, str], rules: Path) -> None:
        self._directory = directory
        self._targets = targets
        self._rules = rules
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""
        self.begun = time.time()

    async def __aenter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self._rules / "*.yml")],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in self._targets.items()
            ],
        }
        file = self._directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        log = (self._directory / "prometheus.log").open("wb")
        self._process = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={self._directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
            stdout=log,
            stderr=log,
        )
        log.close()
        await eventually(self._ready, 60, ignore=(aiohttp.ClientError, OSError))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()

    async def _ready(self) -> bool:
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/-/ready") as answer:
            return answer.status == 200

    async def _get(self, path: str, **params: str) -> Any:
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/api/v1/{path}", params=params) as answer:
            body = json.loads(await answer.text())
        assert body["status"] == "success", (path, params, body.get("error"))
        return body["data"]

    async def instant(self, expr: str) -> list[Series]:
        """The series of an expression that have a value now which is a number."""
        found = (await self._get("query", query=expr))["result"]
        return [series for series in found if not math.isnan(float(series["value"][1]))]

    async def over_time(self, expr: str, step: float = 1.0) -> list[Series]:
        """The series of an expression since this Prometheus began, without what is no number."""
        span = {"start": f"{self.begun:.3f}", "end": f"{time.time():.3f}", "step": f"{step}"}
        found: list[Series] = []
        for series in (await self._get("query_range", query=expr, **span))["result"]:
            values = [[at, value] for at, value in series["values"] if not math.isnan(float(value))]
            if values:
                found.append({**series, "values": values})
        return found

    async def exemplars(self, expr: str) -> list[Series]:
        end = f"{time.time():.3f}"
        return await self._get("query_exemplars", query=expr, start=f"{self.begun:.3f}", end=end)

    async def alerts(self) -> set[str]:
        """The names of the alerts that fire."""
        found = (await self._get("alerts"))["alerts"]
        return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}

    async def up(self) -> set[str]:
        return {series["metric"]["job"] for series in await self.instant("up == 1")}
