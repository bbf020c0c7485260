"""What `trunkline doctor --cluster` says of what servers and services told (fields as the JetStream API has them)."""

from typing import Any

import pytest

from trunkline_cli.cluster import Told, check_leases, check_services, check_stream


def info(*replicas: dict[str, Any], leader: str = "n1", **more: Any) -> dict[str, Any]:
    config = {"name": "EVENTS", "num_replicas": len(replicas) + 1, "max_bytes": 1000}
    state = {"messages": 3, "bytes": 10, "consumer_count": 2, **more}
    return {"config": config, "state": state, "cluster": {"leader": leader, "replicas": list(replicas)}}


def replica(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "current": True, "lag": 0, **fields}


def test_a_whole_stream_is_well() -> None:
    [finding] = check_stream(info(replica("n2"), replica("n3")), 3)
    assert (finding.state, finding.advice) == ("ok", None)
    assert finding.found == "led by n1, R3, 3 messages, 10 bytes (1% of its limit), 2 consumers"


@pytest.mark.parametrize(
    ("told", "state", "words"),
    [
        (info(replica("n2"), replica("n3"), leader=""), "fail", "no leader"),
        (info(replica("n2", offline=True), replica("n3")), "fail", "n2 away, 2 of 3 there"),
        (info(*[replica(f"n{n}", offline=n == 2) for n in range(2, 6)]), "warn", "n2 away, 4 of 5 there"),
        (info(replica("n2", current=False, lag=40), replica("n3")), "warn", "behind: n2 by 40"),
        (info(replica("n2", lag=5000), replica("n3")), "warn", "behind: n2 by 5000"),
        (info(replica("n2"), replica("n3"), bytes=900), "fail", "90% of its limit"),
        (info(replica("n2"), replica("n3"), consumer_count=5000), "warn", "5000 consumers"),
        (info(), "warn", "EVENTS has 3 copies"),
    ],
)
def test_what_is_not_well_is_named_with_what_to_do(told: dict[str, Any], state: str, words: str) -> None:
    [finding] = check_stream(told, 3)
    assert finding.state == state
    assert words in finding.found
    assert finding.advice


def test_work_that_nobody_does_is_named() -> None:
    keys = ["projector.0-31", "projector.32-63", "projector.workspaces", "projector.replica.a", "ses_1", "ses_2"]
    findings = list(check_leases(keys))
    assert [(one.check, one.state) for one in findings] == [("leases of teams", "fail"), ("leases", "ok")]
    assert findings[-1].found == "3 of projector, 1 of projector replicas, 2 of sessions"


def test_versions_side_by_side_are_an_upgrade_under_way() -> None:
    told = [Told(f"trunkline-{name}", name, "1") for name in ("gateway", "permissions", "projector", "adapters")]
    assert [one.state for one in check_services(told)] == ["ok"]
    [mixed] = check_services([*told, Told("trunkline-gateway", "another", "2")])
    assert (mixed.state, mixed.found) == (
        "warn",
        "1 adapters 1, 1 gateway 1, 1 gateway 2, 1 permissions 1, 1 projector 1",
    )
    [missing] = check_services(told[:3])
    assert missing.state == "fail"
    assert "no adapters" in missing.found
