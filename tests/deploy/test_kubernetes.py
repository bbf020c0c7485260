"""The manifests of every overlay, as kubectl builds them: valid for three versions, and whole across objects."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from trunkline_bus.credentials import GRANTS

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.34", "1.37")
WORKLOADS = ("Deployment", "StatefulSet", "Job", "CronJob")
OF_OPERATORS = ("PodMonitor",)
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
        return ((one, one["spec"]["template"]) for one in self.of(*WORKLOADS))

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


@pytest.fixture(scope="module", params=["dev", "prod"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """With keys as `trunkline auth init` makes them."""
    root = tmp_path_factory.mktemp("kubernetes") / "kubernetes"
    shutil.copytree(KUBERNETES, root, ignore=shutil.ignore_patterns("keys"))
    overlay = root / "overlays" / request.param
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
            assert "secret" not in volume or volume["secret"]["secretName"] in secrets
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
                if workload["kind"] != "Job":
                    assert container[kind]["httpGet"]["port"] in ports, f"{workload['metadata']['name']}: {kind}"
    for service in built.of("Service"):
        (pod,) = built.selected({"matchLabels": service["spec"]["selector"]})
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in ports_of(pod)
    for monitor in built.of("PodMonitor"):
        pods = built.selected(monitor["spec"]["selector"])
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            assert any(endpoint["port"] in ports_of(pod) for pod in pods)


def test_each_service_has_its_own_key_and_no_other(built: Built) -> None:
    users = {"gateway", "permissions", "projector", "teams", "worker", "topology"}
    seen: dict[str, str] = {}
    for workload, pod in built.pods():
        name = workload["metadata"]["name"]
        secrets = [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]
        if name in users:
            (seen[name],) = secrets
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
            "namespaceSelector" not in p and other in built.selected(p["podSelector"]) for p in peers
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
        assert reaches(built, pod, nats, 6222 if pod is nats else 4222), f"{name} has to reach the log"
        for other in ("permissions", "projector"):
            assert not reaches(built, pod, built.workload(other)["spec"]["template"], 9464), f"{name} reaches {other}"
    stranger = {"metadata": {"labels": {}}, "spec": {"containers": []}}
    assert not reaches(built, stranger, nats, 4222)
    assert reaches(built, stranger, built.workload("gateway")["spec"]["template"], 30086)


def test_three_copies_need_three_servers_that_sync(built: Built) -> None:
    servers = built.workload("nats")["spec"]["replicas"]
    command = built.workload("topology")["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--replicas") + 1] == str(servers)
    (config,) = (one["data"]["nats.conf"] for one in built.of("ConfigMap") if "nats.conf" in one["data"])
    assert "sync_interval: always" in config
    assert config.count(".nats-headless:6222") == (servers if servers > 1 else 0)
