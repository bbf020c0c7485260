"""Who may reach whom, by the NetworkPolicies of every overlay."""

from ipaddress import ip_address, ip_network

import pytest
from tests.deploy.overlays import Built, Obj, needs_kubectl, reaches

pytestmark = needs_kubectl

ELSEWHERE = {
    "dns": ({"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}, 53),
    "traces": ({"namespaceSelector": {"matchLabels": {"trunkline/monitoring": "true"}}}, 4318),
}
"""What is in other namespaces: the peer that means it, and its port."""


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


def test_agents_reach_the_world_but_neither_the_cluster_nor_the_machine(built: Built) -> None:
    (policy,) = (one for one in built.of("NetworkPolicy") if one["metadata"]["name"] == "worker")
    blocks = [peer["ipBlock"] for rule in policy["spec"]["egress"] for peer in rule["to"] if "ipBlock" in peer]
    assert {block["cidr"] for block in blocks} == {"0.0.0.0/0", "::/0"}
    closed = [ip_network(net) for block in blocks for net in block["except"]]
    for private in ("169.254.169.254", "10.96.0.1", "172.20.0.1", "192.168.1.1", "fd00::1", "168.63.129.16"):
        assert any(ip_address(private) in net for net in closed), private
    worker = built.workload("worker")["spec"]["template"]
    assert not reaches(built, worker, built.workload("gateway")["spec"]["template"], 30086)


@pytest.mark.parametrize("what", sorted(ELSEWHERE))
def test_who_may_not_go_everywhere_may_ask_for_names_and_send_traces(built: Built, what: str) -> None:
    peer, port = ELSEWHERE[what]
    for workload, pod in built.pods():
        policies: list[Obj] = [
            one["spec"]
            for one in built.of("NetworkPolicy")
            if "Egress" in one["spec"]["policyTypes"] and pod in built.selected(one["spec"]["podSelector"])
        ]
        name = workload["metadata"]["name"]
        assert policies or name == "monitor", f"{name} may go everywhere"
        if policies and (what == "dns" or name != "nats"):
            opened = [
                (one["port"], one.get("protocol", "TCP"))
                for policy in policies
                for rule in policy["egress"]
                if peer in rule["to"]
                for one in rule["ports"]
            ]
            wanted = {(port, "TCP")} | ({(port, "UDP")} if what == "dns" else set())
            assert wanted <= set(opened), name


def test_prometheus_reaches_every_port_with_metrics(built: Built) -> None:
    (policy,) = (one["spec"] for one in built.of("NetworkPolicy") if one["metadata"]["name"] == "metrics")
    (rule,) = policy["ingress"]
    assert rule["from"] == [ELSEWHERE["traces"][0]]
    picked = built.selected(policy["podSelector"])
    assert all(pod in picked for _, pod in built.pods())
    assert {9464, 8222} == {one["port"] for one in rule["ports"]}
