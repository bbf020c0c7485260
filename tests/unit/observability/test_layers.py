"""What Prometheus, Grafana and the collector are given in Compose, against the services that there are."""

from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[3]
DEPLOY: Final = ROOT / "deploy"


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


BASE: Final = load(ROOT / "docker-compose.yml")["services"]
LAYER: Final = load(DEPLOY / "docker" / "observability.yml")["services"]


def test_what_the_layer_mounts_is_there() -> None:
    for service in LAYER.values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (ROOT / source).exists(), volume


def test_services_of_the_base_send_traces_to_the_collector_of_the_layer() -> None:
    receiver = load(DEPLOY / "otel" / "collector.yml")["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    traced = {name for name, service in LAYER.items() if "TRUNKLINE_OTLP_ENDPOINT" in service.get("environment", {})}
    assert traced == {"gateway", "permissions", "projector", "teams", "worker"}
    assert traced <= set(BASE)
    for name in traced:
        assert LAYER[name]["environment"]["TRUNKLINE_OTLP_ENDPOINT"].endswith(
            f"http://otel:{receiver.rpartition(':')[2]}}}"
        )


def test_prometheus_asks_every_service_by_its_name() -> None:
    config = load(DEPLOY / "prometheus" / "prometheus.yml")
    jobs = {job["job_name"] for job in config["scrape_configs"]}
    assert jobs == {"gateway", "permissions", "projector", "teams", "worker", "monitor"}
    assert jobs <= {*BASE, *LAYER}
    managers = config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert {target.partition(":")[0] for target in managers} <= set(LAYER)


def test_grafana_finds_its_sources_and_dashboards() -> None:
    sources = load(DEPLOY / "grafana" / "provisioning" / "datasources" / "trunkline.yml")["datasources"]
    uids = {source["uid"] for source in sources}
    for source in sources:
        assert source["url"].removeprefix("http://").partition(":")[0] in LAYER
        for leads in source.get("jsonData", {}).get("exemplarTraceIdDestinations", []):
            assert leads["datasourceUid"] in uids
    provider = load(DEPLOY / "grafana" / "provisioning" / "dashboards" / "trunkline.yml")["providers"][0]
    mounts = [volume.split(":")[:2] for volume in LAYER["grafana"]["volumes"]]
    assert ["./deploy/grafana/dashboards", provider["options"]["path"]] in mounts


def test_the_monitor_asks_the_port_on_which_nats_answers() -> None:
    assert LAYER["monitor"]["command"][-1] == "http://nats:8222"
    assert "8222" in str(BASE["nats"]["healthcheck"])
