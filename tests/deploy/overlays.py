"""The overlays of deploy/kubernetes as kubectl builds them, for tests."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
WORKLOADS = ("Deployment", "StatefulSet", "Job", "CronJob")

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, for its kustomize")

Obj = dict[str, Any]


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
