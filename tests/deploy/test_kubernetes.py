"""The manifests of every overlay, as kubectl builds them: valid for three versions, and whole across objects."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from trunkline_adapters.settings import AdaptersSettings
from trunkline_bus import metrics
from trunkline_bus.credentials import GRANTS
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_relay.gate import Gate
from trunkline_relay.server_settings import ServerSettings
from trunkline_service.settings import load

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.34", "1.37")
WORKLOADS = ("Deployment", "StatefulSet", "Job", "CronJob")
OF_OPERATORS = ("PodMonitor", "PrometheusRule", "ScaledObject")
"""Kinds that an operator defines: no schema of Kubernetes has them."""

Obj = dict[str, Any]

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, for its kustomize")


class Built:
    """An overlay's objects."""

    def __init__(self, objects: list[Obj]) -> None:
        self.objects = objects

    def of(self, *kinds: str) -> Iterator[Obj]:
        return (one for one in self.objects if one["kind"] in kinds)

    def names(self, kind: str) -> set[str]:
        return {one["metadata"]["name"] for one in self.of(kind)}

    def workload(self, name: str) -> Obj:
        return next(one for one in self.of(*WORKLOADS) if one["metadata"]["name"] == name)

    def pods(self) -> Iterator[tuple[Obj, Obj]]:
        """Each workload and its pod template."""
        for one in self.of(*WORKLOADS):
            spec = one["spec"]
            yield one, (spec["jobTemplate"]["spec"] if one["kind"] == "CronJob" else spec)["template"]

    def selected(self, selector: Obj) -> list[Obj]:
        """The pod templates that a selector picks."""
        wanted: Obj = selector.get("matchLabels", {})
        found: list[Obj] = []
        for _, pod in self.pods():
            labels = pod["metadata"]["labels"]
            fits = all(labels.get(key) == value for key, value in wanted.items())
            for rule in selector.get("matchExpressions", []):
                fits = fits and labels.get(rule["key"]) in rule["values"]
            if fits:
                found.append(pod)
        return found


def ports_of(pod: Obj) -> dict[str, int]:
    return {
        port["name"]: port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
    }


@pytest.fixture(scope="module", params=["dev", "prod", "prod with relay"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    name, _, component = request.param.partition(" with ")
    return build(tmp_path_factory.mktemp("kubernetes"), name, *([component] if component else []))


def build(directory: Path, name: str, *components: str) -> Built:
    """An overlay with more components than it has, and with keys as `trunkline auth init` makes them."""
    root = directory / "deploy"
    shutil.copytree(KUBERNETES.parent, root, ignore=shutil.ignore_patterns("keys"))
    overlay = root / KUBERNETES.name / "overlays" / name
    file = overlay / "kustomization.yaml"
    more = "".join(f"  - ../../components/{component}\n" for component in components)
    file.write_text(file.read_text().replace("components:\n", f"components:\n{more}"))
    subprocess.run(["trunkline", "auth", "init", str(overlay / "keys")], check=True, capture_output=True)
    done = subprocess.run(["kubectl", "kustomize", str(overlay)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Built(list(yaml.safe_load_all(done.stdout)))


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
            assert "configMap" not in volume or volume["configMap"]["name"] in maps
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
        replicas = max([workload["spec"]["replicas"], *scaled])
        assert replicas > budget["spec"].get("minAvailable", 0), "no node could ever be drained"
    for scaler in built.of("HorizontalPodAutoscaler"):
        target = built.workload(scaler["spec"]["scaleTargetRef"]["name"])
        assert target["kind"] == scaler["spec"]["scaleTargetRef"]["kind"]
        assert all("cpu" in one["resources"]["requests"] for one in target["spec"]["template"]["spec"]["containers"])


def test_what_scales_by_lag_scales_by_nothing_else(tmp_path: Path) -> None:
    built = build(tmp_path, "prod", "keda")
    (scaled,) = built.of("ScaledObject")
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


def reaches(built: Built, pod: Obj, target: Obj, port: int) -> bool:
    """Whether the policies let `pod` open `port` of `target`."""

    def applies(policy: Obj, side: str, one: Obj) -> bool:
        return side in policy["spec"]["policyTypes"] and one in built.selected(policy["spec"]["podSelector"])

    def lets(rule: Obj, side: str, other: Obj) -> bool:
        peers = rule.get("to" if side == "Egress" else "from")
        numbers = [
            ports_of(target).get(p["port"], p["port"]) if isinstance(p["port"], str) else p["port"]
            for p in rule.get("ports", [])
        ]
        known = peers is None or any(
            "podSelector" in p and "namespaceSelector" not in p and other in built.selected(p["podSelector"])
            for p in peers
        )
        return known and (not numbers or port in numbers)

    for side, one, other in (("Egress", pod, target), ("Ingress", target, pod)):
        policies = [policy for policy in built.of("NetworkPolicy") if applies(policy, side, one)]
        rules = [rule for policy in policies for rule in policy["spec"].get(side.lower(), [])]
        if policies and not any(lets(rule, side, other) for rule in rules):
            return False
    return True


def test_only_those_that_need_the_log_reach_it(built: Built) -> None:
    nats = built.workload("nats")["spec"]["template"]
    for workload, pod in built.pods():
        name = workload["metadata"]["name"]
        port = {"nats": 6222, "monitor": 8222}.get(name, 4222)
        assert reaches(built, pod, nats, port), f"{name} has to reach the log"
        for other in ("permissions", "projector"):
            assert not reaches(built, pod, built.workload(other)["spec"]["template"], 9464), f"{name} reaches {other}"
    stranger = {"metadata": {"labels": {}}, "spec": {"containers": []}}
    assert not reaches(built, stranger, nats, 4222)
    assert reaches(built, stranger, built.workload("gateway")["spec"]["template"], 30086)


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


def test_agents_reach_the_world_but_neither_the_cluster_nor_the_machine(built: Built) -> None:
    (policy,) = (one for one in built.of("NetworkPolicy") if one["metadata"]["name"] == "worker")
    blocks = [peer["ipBlock"] for rule in policy["spec"]["egress"] for peer in rule["to"] if "ipBlock" in peer]
    assert {block["cidr"] for block in blocks} == {"0.0.0.0/0", "::/0"}
    closed = [ip_network(net) for block in blocks for net in block["except"]]
    for private in ("169.254.169.254", "10.96.0.1", "172.20.0.1", "192.168.1.1", "fd00::1"):
        assert any(ip_address(private) in net for net in closed), private
    worker = built.workload("worker")["spec"]["template"]
    assert not reaches(built, worker, built.workload("gateway")["spec"]["template"], 30086)


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
