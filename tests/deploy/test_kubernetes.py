"""The manifests of every overlay, as kubectl builds them: valid for three versions, and whole across objects."""

import re
import time
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from tests.deploy.overlays import KUBERNETES, Built, build, needs_kubectl, ports_of, reaches

from trunkline_adapters.settings import AdaptersSettings
from trunkline_bus import metrics
from trunkline_bus.credentials import GRANTS
from trunkline_gateway.settings import GatewaySettings
from trunkline_permissions.settings import PermissionsSettings
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_relay.gate import Gate
from trunkline_relay.server_settings import ServerSettings
from trunkline_service.settings import load

VERSIONS = ("1.31", "1.34", "1.37")
OF_OPERATORS = ("PodMonitor", "PrometheusRule", "ScaledObject")
"""Kinds that an operator defines: no schema of Kubernetes has them."""

pytestmark = needs_kubectl


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(built: Built, version: str) -> None:
    for one in built.objects:
        if one["kind"] not in OF_OPERATORS:
            kubernetes_validate.validate(one, version, strict=True)


def test_all_of_it_is_in_one_namespace_under_the_strictest_standard(built: Built) -> None:
    (namespace,) = built.of("Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for one in built.objects:
        if one["kind"] != "Namespace":
            assert one["metadata"]["namespace"] == namespace["metadata"]["name"]


def test_no_pod_may_do_more_than_it_has_to(built: Built) -> None:
    for workload, pod in built.pods():
        name, spec = workload["metadata"]["name"], pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert {"requests", "limits"} <= set(container["resources"]), name
            image, _, tag = container["image"].rpartition(":")
            assert image, f"{name} names no version of its image"
            assert tag != "latest", name


def test_every_reference_leads_somewhere(built: Built) -> None:
    maps, secrets = built.names("ConfigMap"), built.names("Secret")
    for workload, pod in built.pods():
        spec = pod["spec"]
        volumes = {volume["name"] for volume in spec.get("volumes", [])}
        volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
        for volume in spec.get("volumes", []):
            config = volume.get("configMap", {"optional": True})
            assert config.get("optional") or config["name"] in maps
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            assert claim is None or claim in built.names("PersistentVolumeClaim")
            secret = volume.get("secret", {"optional": True})
            assert secret.get("optional") or secret["secretName"] in secrets
        for container in spec["containers"]:
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes
            for source in container.get("envFrom", []):
                if "configMapRef" in source:
                    assert source["configMapRef"]["name"] in maps
                elif not source["secretRef"].get("optional"):
                    assert source["secretRef"]["name"] in secrets
        if workload["kind"] == "StatefulSet":
            assert workload["spec"]["serviceName"] in built.names("Service")
    for ingress in built.of("Ingress"):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                assert path["backend"]["service"]["name"] in built.names("Service")


def test_selectors_pick_their_pods_and_ports_are_open(built: Built) -> None:
    for workload, pod in built.pods():
        if "selector" in workload["spec"]:
            assert built.selected(workload["spec"]["selector"]) == [pod]
        ports = ports_of(pod)
        for container in pod["spec"]["containers"]:
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                if workload["kind"] not in ("Job", "CronJob"):
                    assert container[kind]["httpGet"]["port"] in ports, f"{workload['metadata']['name']}: {kind}"
    for service in built.of("Service"):
        (pod,) = built.selected({"matchLabels": service["spec"]["selector"]})
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in ports_of(pod)
    for monitor in built.of("PodMonitor"):
        pods = built.selected(monitor["spec"]["selector"])
        assert all(pod in pods for _, pod in built.pods() if "metrics" in ports_of(pod)), "all are scraped"
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            assert any(endpoint["port"] in ports_of(pod) for pod in pods)


def test_each_service_has_its_own_key_and_no_other(built: Built) -> None:
    users = {"gateway", "permissions", "projector", "teams", "worker", "topology"}
    users |= {"relay"} & built.names("Deployment")
    seen: dict[str, str] = {}
    for workload, pod in built.pods():
        name = workload["metadata"]["name"]
        secrets = [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]
        if name in users:
            (seen[name],) = [one for one in secrets if one.startswith("nats-")]
        assert name == "gateway" or not any("token" in one for one in secrets)
    assert set(seen) == users
    assert len(set(seen.values())) == len(users)
    for name, secret in seen.items():
        user = "admin" if name == "topology" else name
        assert user in GRANTS
        assert secret.startswith(f"nats-{user}-")
        (stored,) = (one["data"] for one in built.of("Secret") if one["metadata"]["name"] == secret)
        assert set(stored) == {f"{user}.nk"}, "a key's file is named after its user"
        (container,) = built.workload(name)["spec"]["template"]["spec"]["containers"]
        assert {"name": "TRUNKLINE_NATS_SEED", "value": f"/etc/trunkline/{user}.nk"} in container["env"]


def test_disruptions_and_scaling_are_of_what_there_is(built: Built) -> None:
    for budget in built.of("PodDisruptionBudget"):
        (pod,) = built.selected(budget["spec"]["selector"])
        workload = next(one for one, template in built.pods() if template is pod)
        scaled = [
            one["spec"]["minReplicas"]
            for one in built.of("HorizontalPodAutoscaler")
            if one["spec"]["scaleTargetRef"]["name"] == workload["metadata"]["name"]
        ]
        assert len(scaled) + ("replicas" in workload["spec"]) == 1, (
            "each roll-out would take the autoscaler's number back"
        )
        replicas = scaled[0] if scaled else workload["spec"]["replicas"]
        assert replicas > budget["spec"].get("minAvailable", 0), "no node could ever be drained"
    for scaler in built.of("HorizontalPodAutoscaler"):
        target = built.workload(scaler["spec"]["scaleTargetRef"]["name"])
        assert target["kind"] == scaler["spec"]["scaleTargetRef"]["kind"]
        assert all("cpu" in one["resources"]["requests"] for one in target["spec"]["template"]["spec"]["containers"])


def test_what_scales_by_lag_scales_by_nothing_else(tmp_path: Path) -> None:
    built = build(tmp_path, "prod", "keda")
    (scaled,) = built.of("ScaledObject")
    assert "replicas" not in built.workload(scaled["spec"]["scaleTargetRef"]["name"])["spec"]
    assert built.workload(scaled["spec"]["scaleTargetRef"]["name"])["kind"] == "Deployment"
    others = [one["spec"]["scaleTargetRef"]["name"] for one in built.of("HorizontalPodAutoscaler")]
    assert others == ["gateway"]
    (trigger,) = scaled["spec"]["triggers"]
    (name,) = (one.name for one in metrics.READER_LAG_EVENTS.collect())
    asked = re.search(rf'{name}{{consumer=~"(.+?)"}}', trigger["metadata"]["query"])
    assert asked is not None
    for view in (SessionsView.name, PagesView.name):
        # Whole, or a part of it.
        assert re.fullmatch(asked[1], view)
        assert re.fullmatch(asked[1], f"{view}.3")


def test_a_turn_may_end_before_its_worker_does(built: Built) -> None:
    worker = built.workload("worker")["spec"]
    (container,) = worker["template"]["spec"]["containers"]
    told = {one["name"]: one["value"] for one in container["env"]}
    turns, drain = float(told["TRUNKLINE_ADAPTERS_TURNS_WITHIN"]), float(told["TRUNKLINE_DRAIN_S"])
    assert 0 < turns < drain < worker["template"]["spec"]["terminationGracePeriodSeconds"]
    settings, _ = load(AdaptersSettings, "adapters", environ=told)
    assert (settings.turns_within, settings.drain_s) == (turns, drain)
    # What its agents left is where the next pod of the same name looks for it.
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    claims = {claim["metadata"]["name"] for claim in worker["volumeClaimTemplates"]}
    assert {mounts[path] for path in ("/var/lib/trunkline", "/home/trunkline", "/projects")} <= claims


def test_what_is_busy_is_not_taken_for_dead(built: Built) -> None:
    """Its loop may be late by seconds; who is restarted for that has more to do afterwards."""
    for workload, pod in built.pods():
        for container in pod["spec"]["containers"]:
            if "livenessProbe" in container:
                alive = container["livenessProbe"]
                assert alive["timeoutSeconds"] >= 5, workload["metadata"]["name"]
                assert alive["periodSeconds"] * alive["failureThreshold"] >= 60, workload["metadata"]["name"]


@pytest.mark.parametrize("name", ["gateway", "relay"])
def test_who_is_replaced_serves_until_nobody_new_is_sent(tmp_path: Path, name: str) -> None:
    spec = build(tmp_path, "prod", "relay").workload(name)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    command, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    settings, _ = load(GatewaySettings, "gateway", environ={})
    assert command == "sleep"
    assert int(seconds) + settings.drain_s < spec["terminationGracePeriodSeconds"]


def test_a_volume_is_not_gone_through_at_each_start(built: Built) -> None:
    for workload, pod in built.pods():
        claimed = any("persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes", []))
        if claimed or workload["spec"].get("volumeClaimTemplates"):
            context = pod["spec"]["securityContext"]
            assert context["fsGroupChangePolicy"] == "OnRootMismatch", workload["metadata"]["name"]


def test_rules_that_decide_asks_are_where_the_service_looks_for_them(built: Built) -> None:
    (container,) = built.workload("permissions")["spec"]["template"]["spec"]["containers"]
    settings, _ = load(PermissionsSettings, "permissions", environ={e["name"]: e["value"] for e in container["env"]})
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert settings.policy is not None
    assert mounts[str(settings.policy.parent)] == "policy"
    assert settings.policy.name in (KUBERNETES.parent / "README.md").read_text()


def test_the_host_name_is_the_same_wherever_it_stands(tmp_path: Path) -> None:
    built = build(tmp_path, "prod")
    (ingress,) = built.of("Ingress")
    (name,) = {rule["host"] for rule in ingress["spec"]["rules"]} | {
        host for tls in ingress["spec"]["tls"] for host in tls["hosts"]
    }
    told = {
        entry["name"]: entry.get("value", "")
        for _, pod in built.pods()
        for container in pod["spec"]["containers"]
        for entry in container.get("env", [])
    }
    assert name in told["TRUNKLINE_GATEWAY_HOSTS"].split(",")
    assert told["TRUNKLINE_GATEWAY_ORIGINS"] == f"https://{name}"
    assert told["TRUNKLINE_MONITOR_CERTIFICATES"] == f"{name}:443"
    overlay = KUBERNETES / "overlays" / "prod"
    row = next(line for line in (KUBERNETES.parent / "README.md").read_text().splitlines() if "the host name" in line)
    for file in overlay.glob("*.yaml"):
        if name in file.read_text():
            assert f"{file.name}`" in row, "people have to change it there, too"


def test_who_has_metrics_is_scraped_and_missed_when_it_is_gone(tmp_path: Path) -> None:
    built = build(tmp_path, "prod", "relay")
    (monitor,) = built.of("PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    scraped = {
        pod["metadata"]["labels"][monitor["spec"]["jobLabel"]]
        for pod in built.selected(monitor["spec"]["selector"])
        if endpoint["port"] in ports_of(pod)
    }
    assert scraped == {one["metadata"]["name"] for one, pod in built.pods() if 9464 in ports_of(pod).values()}
    (rule,) = built.of("PrometheusRule")
    alerts = [one for group in rule["spec"]["groups"] for one in group["rules"]]
    (down,) = (one["expr"] for one in alerts if one.get("alert") == "TrunklineServiceDown")
    listed = re.search(r'up{job=~"([^"]+)"}', down)
    assert listed is not None
    assert set(listed[1].split("|")) == scraped
    # The relay is there for those alone who put it there.
    assert set(re.findall(r'absent\(up{job="(\w+)"}\)', down)) == scraped - {"relay"}


def test_three_copies_need_three_servers_that_sync(built: Built) -> None:
    servers = built.workload("nats")["spec"]["replicas"]
    command = built.workload("topology")["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--replicas") + 1] == str(servers)
    (config,) = (one["data"]["nats.conf"] for one in built.of("ConfigMap") if "nats.conf" in one["data"])
    assert "sync_interval: always" in config
    assert config.count(".nats-headless:6222") == (servers if servers > 1 else 0)


def test_the_relay_answers_to_the_name_of_its_ingress_and_shares_hosts(tmp_path: Path) -> None:
    built = build(tmp_path, "dev", "relay")
    (host,) = (rule["host"] for one in built.of("Ingress") for rule in one["spec"]["rules"])
    spec = built.workload("relay")["spec"]
    assert spec["replicas"] == 2, "two that are one relay need NATS, which they are given"
    (container,) = spec["template"]["spec"]["containers"]
    (common,) = (one["data"] for one in built.of("ConfigMap") if one["metadata"]["name"].startswith("trunkline-"))
    told = common | {one["name"]: one["value"] for one in container["env"]}
    settings, _ = load(ServerSettings, "relay_server", environ=told)
    assert (settings.hosts, settings.url) == ([host], f"https://{host}")
    assert settings.nats_url == "nats://nats:4222"
    assert settings.nats_seed == Path("/etc/trunkline/relay.nk")
    assert settings.tokens is not None, "not everybody may bring a host"
    assert ports_of(spec["template"])["http"] == settings.port
    relay = spec["template"]
    stranger = {"metadata": {"labels": {}}, "spec": {"containers": []}}
    assert reaches(built, stranger, relay, settings.port)
    assert not reaches(built, stranger, relay, 9464)
    assert not reaches(built, relay, built.workload("gateway")["spec"]["template"], 30086)
    Gate(time.monotonic, proxies=settings.proxies)


def test_the_relay_of_compose_is_alone_and_as_narrow_as_the_others() -> None:
    compose = yaml.safe_load((KUBERNETES.parent / "docker" / "relay.yml").read_text())
    (relay,) = compose["services"].values()
    assert (relay["read_only"], relay["cap_drop"]) == (True, ["ALL"])
    assert all(port.startswith("127.0.0.1:") for port in relay["ports"])
    settings, _ = load(ServerSettings, "relay_server", environ=relay["environment"])
    assert settings.nats_url == ""
    assert str(settings.tokens) in relay["volumes"][0]
    assert relay["ports"][0].endswith(f":{settings.port}")
    Gate(time.monotonic, proxies=settings.proxies)
