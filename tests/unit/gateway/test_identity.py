"""Scopes, limits, privileges, and what a provider's claims make of somebody."""

import pytest

from trunkline_gateway.limits import MAX_CLIENTS, Limits
from trunkline_gateway.privileges import role_for_session, role_for_verb
from trunkline_gateway.provider import LEEWAY_S, Provider, principal_of
from trunkline_gateway.roles import Role, Scope
from trunkline_wire import TrunklineError
from trunkline_wire.commands import VERBS
from trunkline_wire.session import Capabilities, SessionOptions

A, B = "ses_" + "a" * 32, "ses_" + "b" * 32
WS = "ws_" + "c" * 32


def test_a_scope_holds_its_sessions_and_those_of_its_workspaces() -> None:
    assert Scope().holds(A, None)
    limited = Scope(sessions=(A,), workspaces=(WS,))
    assert (limited.holds(A, None), limited.holds(B, WS), limited.holds(B, "ws_other"), limited.holds(B, None)) == (
        True,
        True,
        False,
        False,
    )
    assert (Scope().rights, Scope(sessions=(B, A)).rights) == ("", f"{A} {B}")


def test_a_client_may_send_ten_a_second_and_a_burst() -> None:
    limits = Limits(10, 1000, 2)
    for _ in range(20):
        limits.take("x", 1, 0.0)
    with pytest.raises(TrunklineError) as refused:
        limits.take("x", 1, 0.0)
    # twenty are gone, the next is there after a tenth of a second
    assert (refused.value.code, refused.value.details["retry_after"]) == ("rate_limited", 0.1)
    limits.take("y", 1, 0.0)
    limits.take("x", 1, 0.11)


def test_bytes_have_a_bucket_of_their_own_and_a_large_request_leaves_a_debt() -> None:
    limits = Limits(0, 1000, 2)
    limits.take("x", 5000, 0.0)  # more than the bucket holds: it has to be full, and then lacks 3000
    with pytest.raises(TrunklineError) as refused:
        limits.take("x", 1, 2.0)
    assert refused.value.details["retry_after"] == 1.001
    limits.take("x", 1, 3.1)
    Limits(0, 0, 2).take("x", 10**9, 0.0)


def test_clients_are_forgotten_before_they_are_too_many() -> None:
    limits = Limits(1, 0, 1)
    limits.take("first", 1, 0.0)
    for number in range(MAX_CLIENTS):
        limits.take(str(number), 1, 0.0)
    limits.take("first", 1, 0.0)


PROVIDER = Provider(
    issuer="https://login.example", audience="trunkline", roles={"admins": "owner", "dev": "participant"}
)


@pytest.mark.parametrize(
    ("claim", "role"),
    [
        ("approver", "approver"),
        (["dev"], "participant"),
        (["dev", "admins", "else"], "owner"),
        (["viewer", "dev"], "participant"),
    ],
)
def test_roles_of_a_provider(claim: object, role: Role) -> None:
    principal = principal_of({"sub": "ann@example.org", "exp": 1000, "trunkline_role": claim}, PROVIDER)
    assert (principal.actor, principal.role, principal.expires) == ("ann@example.org", role, 1000 + LEEWAY_S)


@pytest.mark.parametrize("claim", [None, "admin", [], [7, None], {"owner": True}])
def test_whom_the_provider_gives_no_role_may_not_come_in(claim: object) -> None:
    with pytest.raises(TrunklineError) as refused:
        principal_of({"sub": "ann", "exp": 1, "trunkline_role": claim}, PROVIDER)
    assert refused.value.code == "forbidden"


@pytest.mark.parametrize("name", [None, "", "x" * 129, "a\nb", 7, "ext:bot", "policy"])
def test_whom_the_provider_gives_no_name_may_not_come_in(name: object) -> None:
    with pytest.raises(TrunklineError) as refused:
        principal_of({"sub": name, "exp": 1, "trunkline_role": "owner"}, PROVIDER)
    assert refused.value.code == "unauthorized"


@pytest.mark.parametrize(
    ("options", "role"),
    [
        (SessionOptions(), "participant"),
        (SessionOptions(model="m", budget_usd=1.0, prompt="p"), "participant"),
        (SessionOptions(mode="bypassPermissions"), "approver"),
        (SessionOptions(allowed_tools=["Bash"]), "approver"),
        (SessionOptions(resume_native="x"), "approver"),
        (SessionOptions(environment={"A": "b"}), "owner"),
        (SessionOptions(mcp_servers={"x": {"command": "sh"}}), "owner"),
        (SessionOptions(native={"args": ["--dangerously-skip-permissions"]}), "owner"),
    ],
)
def test_options_that_go_around_asks_need_a_role(options: SessionOptions, role: Role) -> None:
    assert role_for_session(options, Capabilities(permissions=True)) == role


def test_agents_that_do_not_ask_are_an_approvers_to_start() -> None:
    assert role_for_session(SessionOptions(), Capabilities(permissions=False)) == "approver"
    guessed = Capabilities(permissions=True, heuristic=("permissions",))
    assert role_for_session(SessionOptions(), guessed) == "approver"
    assert role_for_session(SessionOptions(), None) == "participant"


def test_verbs_that_go_around_asks_need_a_role() -> None:
    above = {verb: role_for_verb(verb) for verb in VERBS if role_for_verb(verb) != "participant"}
    assert above == {"set_mode": "approver", "hand_over": "approver", "kill": "owner", "native": "owner"}
