"""Who is notified of an ask, and what is a push subscription."""

import pytest
from msgspec.structs import replace

from trunkline_fold.asks import Ask, PermissionAsk
from trunkline_gateway.push import Keys, Subscription, to_notify
from trunkline_gateway.roles import Role, Scope
from trunkline_gateway.tokens import TokenRecord
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskRouted, PermissionRequested

ASK = f"ask_{'0' * 32}"
SESSION, OTHER = f"ses_{'1' * 32}", f"ses_{'2' * 32}"
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"

OPEN = PermissionAsk(
    ask=ASK,
    session=SESSION,
    incarnation="inc",
    requested=PermissionRequested(ask=ASK, name="Bash", incarnation="inc"),
    sequence=1,
    time="2026-01-01T00:00:00Z",
    status="open",
)


def token(device: str | None, role: Role = "approver", **scope: tuple[str, ...]) -> TokenRecord:
    return TokenRecord(
        id="x", hash="x", actor="ann", role=role, created="2026-01-01T00:00:00Z", device=device, scope=Scope(**scope)
    )


def told(ask: Ask, *tokens: TokenRecord) -> set[str]:
    return to_notify(tokens, ask, "ws_1")


def test_devices_with_the_right_to_decide_are_told() -> None:
    assert told(OPEN, token("dev_1"), token("dev_2", "owner"), token(None)) == {"dev_1", "dev_2"}
    assert told(OPEN, token("dev_1", "participant"), token("dev_2", "viewer")) == set()


def test_a_limited_device_is_told_of_what_it_sees() -> None:
    seen = [token("dev_1", sessions=(SESSION,)), token("dev_2", workspaces=("ws_1",))]
    unseen = [token("dev_3", sessions=(OTHER,)), token("dev_4", workspaces=("ws_2",))]
    assert told(OPEN, *seen, *unseen) == {"dev_1", "dev_2"}
    assert to_notify([*seen, *unseen], OPEN, None) == {"dev_1"}


def test_a_device_is_not_told_of_what_needs_a_higher_role() -> None:
    routed = replace(OPEN, routed=AskRouted(ask=ASK, policy="1", role="owner"))
    assert told(routed, token("dev_1"), token("dev_2", "owner")) == {"dev_2"}
    assert told(replace(OPEN, routed=AskRouted(ask=ASK, policy="1", quorum=2)), token("dev_1")) == {"dev_1"}


@pytest.mark.parametrize("status", ["decided", "expired", "withdrawn", "lost"])
def test_nobody_is_told_of_what_is_over(status: str) -> None:
    assert told(replace(OPEN, status=status), token("dev_1", "owner")) == set()


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://push.example.org/send/abc?x=1",
        "https://push.example.org:8443/x",
        "http://127.0.0.1:5000/x",
        "https://[::1]/x",
    ],
)
def test_a_push_service(endpoint: str) -> None:
    Subscription(endpoint=endpoint, keys=Keys(p256dh=P256DH, auth=AUTH)).check()


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "x",
        "https://",
        "http://push.example.org/x",
        "http://localhost/x",
        "ftp://127.0.0.1/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest",
        "https://[fe80::1]/x",
        "https://me:secret@push.example.org/x",
        "https://push.example.org/x#y",
        "https://push.example.org/x y",
        "https://push.example.org:port/x",
        "https://push.example.org/\u00e9",
        "https://push.example.org/" + "x" * 2048,
    ],
)
def test_no_push_service(endpoint: str) -> None:
    with pytest.raises(TrunklineError) as error:
        Subscription(endpoint=endpoint, keys=Keys(p256dh=P256DH, auth=AUTH)).check()
    assert (error.value.code, error.value.details) == ("bad_params", {"field": "subscription.endpoint"})


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        (Keys(p256dh=P256DH[:-4], auth=AUTH), "p256dh"),
        (Keys(p256dh="A" + P256DH[1:], auth=AUTH), "p256dh"),
        (Keys(p256dh="*" * 87, auth=AUTH), "p256dh"),
        (Keys(p256dh=P256DH * 1000, auth=AUTH), "p256dh"),
        (Keys(p256dh=P256DH, auth=AUTH + "AAAA"), "auth"),
        (Keys(p256dh=P256DH, auth=""), "auth"),
    ],
)
def test_keys_that_are_none(keys: Keys, field: str) -> None:
    with pytest.raises(TrunklineError) as error:
        Subscription(endpoint="https://push.example.org/x", keys=keys).check()
    assert error.value.details == {"field": f"subscription.keys.{field}"}
