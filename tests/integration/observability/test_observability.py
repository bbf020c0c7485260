"""Dashboards, alerts, traces and logs against the real product under load and a real Prometheus. `just observe` runs it."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml
from deploy.grafana.boards import BOARDS
from tests.integration.observability.prometheus import needs_prometheus
from tests.integration.observability.receiver import Span
from tests.integration.observability.stage import JOBS, RULES, Stage, stage

from trunkline_bus.metrics import catalogue
from trunkline_testkit import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="module"), needs_prometheus]

WINDOW: Final = "30s"
QUIET: Final = {
    "trunkline_redeliveries_total": "a worker has to die with work in its hands",
    "trunkline_writers_stopped_total": "a session has to have two owners",
    "trunkline_projection_lost_writes_total": "a part has to have two replicas",
    "trunkline_bus_errors_total": "a NATS user has to lack a right",
    "trunkline_permission_rejected_answers_total": "clients do not let such an answer through",
    "trunkline_team_caveats_total": "an agent has to tell nonsense",
    "trunkline_observed_total": "agents have to run without Trunkline",
    "trunkline_observed_dropped_total": "agents have to run without Trunkline",
    "trunkline_hooks_total": "agents have to run without Trunkline",
    **dict.fromkeys(
        (
            "trunkline_relay_hosts",
            "trunkline_relay_visits",
            "trunkline_relay_frames_total",
            "trunkline_relay_bytes_total",
            "trunkline_relay_refused_total",
            "trunkline_relay_slow_total",
        ),
        "a relay is elsewhere",
    ),
    **dict.fromkeys(
        (
            "trunkline_relay_host_connected",
            "trunkline_relay_host_reconnects_total",
            "trunkline_relay_host_visits",
            "trunkline_relay_host_visits_begun_total",
            "trunkline_relay_host_refused_total",
            "trunkline_relay_host_handshakes_failed_total",
            "trunkline_relay_host_bytes_total",
            "trunkline_relay_host_pairings_total",
        ),
        "a host has to have a relay",
    ),
}
"""What a healthy run does not show: its panels are asked, and may be empty."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    """The stage after two rounds of load, so that what happens seldom has risen, and after an outage of the log."""
    directory = tmp_path_factory.mktemp("observability")
    async with stage(directory) as up:
        await up.load(directory / "work")
        await up.settled(2)
        await up.load(directory / "work")
        await up.outage()
        await up.settled(5)
        yield up


def quiet(expr: str) -> bool:
    return any(name in expr for name in QUIET)


async def test_every_panel_has_data(played: Stage) -> None:
    empty: list[str] = []
    for board in BOARDS:
        for panel in board.panels:
            for query in panel.queries:
                found = await played.metrics.over_time(query.expr.replace("$__rate_interval", WINDOW))
                if not found and not quiet(query.expr):
                    empty.append(f"{board.uid}: {panel.title}: {query.expr}")
    assert not empty, "\n".join(empty)


async def test_every_metric_of_the_registry_is_exported(played: Stage) -> None:
    silent = [
        metric.name
        for metric in catalogue().values()
        if metric.name not in QUIET and not await played.metrics.over_time(metric.samples[0])
    ]
    assert not silent


async def test_every_alert_is_loaded_and_has_something_to_judge(played: Stage) -> None:
    names = re.compile(r"\btrunkline_[a-z0-9_]+\b")
    for file in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                await played.metrics.instant(rule["expr"])
                for name in names.findall(rule["expr"]):
                    assert quiet(name) or await played.metrics.over_time(name), (rule.get("alert"), name)


async def test_tokens_and_certificates_have_the_days_that_they_were_given(played: Stage) -> None:
    # Three and sixty days, as the stage makes them.
    for expr, days in (
        ("min(trunkline_gateway_token_expiry_timestamp_seconds) - time()", 3),
        ("min(trunkline_certificate_expiry_timestamp_seconds) - time()", 60),
    ):
        [series] = await played.metrics.instant(expr)
        assert float(series["value"][1]) == pytest.approx(days * 86400, abs=1800), expr


async def test_an_alert_fires(played: Stage) -> None:
    # Somebody wrote an answer that is none.
    async def firing() -> bool:
        return "TrunklineDeadLetters" in await played.metrics.alerts()

    await eventually(firing, 30, interval=0.5)


@pytest.mark.parametrize("service", sorted(JOBS))
async def test_every_service_has_metrics_logs_and_traces(played: Stage, service: str) -> None:
    program = "adapters" if service == "worker" else service
    for expr in (
        f'up{{job="{service}"}} == 1',
        f'trunkline_service_ready{{job="{service}",service="{program}"}} == 1',
        f'rate(process_cpu_seconds_total{{job="{service}"}}[{WINDOW}]) > 0',
        f'trunkline_loop_lag_seconds_count{{job="{service}"}} > 0',
        f'trunkline_bus_connected{{job="{service}"}} == 1',
    ):
        assert await played.metrics.instant(expr), expr
    lines = played.log_lines(program)
    assert {"starting", "ready"} <= {line["event"] for line in lines}
    assert all(line["service"] == program and "timestamp" in line and "level" in line for line in lines)
    assert any(span.service == program for span in played.receiver.spans)


async def test_no_series_names_a_session(played: Stage) -> None:
    for series in await played.metrics.instant('{__name__=~"trunkline_.*"}'):
        for name, value in series["metric"].items():
            assert not re.search(r"(ses|tur|itm|ask|ws)_[0-9a-f]{32}", value), (name, value)
    # A process has some hundred series, whatever it does.
    for series in await played.metrics.instant('count by (job) ({__name__=~"trunkline_.*"})'):
        assert float(series["value"][1]) < 3000, series


async def test_a_duration_leads_to_a_trace(played: Stage) -> None:
    known = {span.trace for span in played.receiver.spans}
    for histogram in ("trunkline_turn_seconds", "trunkline_gateway_request_seconds", "trunkline_append_seconds"):
        found = await played.metrics.exemplars(f"{histogram}_bucket")
        ids = {one["labels"]["trace_id"] for series in found for one in series["exemplars"]}
        assert ids & known, histogram


async def test_one_trace_runs_from_the_prompt_to_the_last_consumer(played: Stage, tmp_path: Path) -> None:
    async with await played.product.client() as client:
        created = await client.call("session.create", adapter="demo", cwd=str(tmp_path))
        session: str = created["session"]
        await client.subscribe(session, start="start")
        played.receiver.spans.clear()
        await client.call("session.prompt", session=session, text="ask ls")
        await client.wait("turn.completed", session=session, within=60)
        await client.call("session.close", session=session)
        await client.wait("session.closed", session=session, within=60)

    def tree() -> dict[str, Span]:
        # the latest: one of another test may come as late
        traces = [prompt.trace for prompt in played.receiver.named("gateway", "gateway session.prompt")][-1:]
        return {f"{s.service}: {s.name}": s for s in played.receiver.spans if s.trace in traces}

    def part(found: dict[str, Span], service: str, start: str, end: str) -> Span | None:
        return next(
            (s for s in found.values() if s.service == service and s.name.startswith(start) and s.name.endswith(end)),
            None,
        )

    def whole() -> dict[str, Span] | None:
        found = tree()
        ends = [("projector", "sessions"), ("projector", "pages"), ("gateway", "gateway"), ("teams", "team-events")]
        there = all(part(found, service, consumer, " turn.completed") for service, consumer in ends)
        return found if there and "adapters: invoke_agent demo" in found else None

    found = await eventually(whole, 60)
    prompt, turn = found["gateway: gateway session.prompt"], found["adapters: invoke_agent demo"]
    assert prompt.parent == ""
    assert prompt.kind == "SERVER"
    assert found["adapters: append command.accepted"].parent == prompt.id
    assert turn.parent == prompt.id
    assert turn.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert turn.attributes["gen_ai.conversation.id"] == session
    assert turn.attributes["gen_ai.usage.input_tokens"] == 10
    tool = next(span for name, span in found.items() if name.startswith("adapters: execute_tool"))
    assert tool.parent == turn.id
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    appended = found["adapters: append turn.completed"]
    assert (appended.parent, appended.kind) == (turn.id, "PRODUCER")
    for service, consumer in (
        ("projector", "sessions"),
        ("projector", "pages"),
        ("gateway", "gateway"),
        ("teams", "team-events"),
    ):
        taken = part(found, service, consumer, " turn.completed")
        assert taken is not None
        assert (taken.parent, taken.kind) == (appended.id, "CONSUMER"), consumer
        assert taken.attributes["messaging.system"] == "nats"
    # The decision, too: by the permission service, because of the agent's question.
    asked = part(found, "permissions", "permissions", " permission.requested")
    decided = found["permissions: append ask.decided"]
    assert asked is not None
    assert decided.parent == asked.id
    content: list[Any] = [value for span in found.values() for value in span.attributes.values()]
    assert not any("ask ls" in str(value) for value in content)
