"""Who may speak to a relay before any key is proven."""

import hashlib
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request

from trunkline_relay.gate import MAX_ADDRESSES, Attempts, Gate
from trunkline_wire import TrunklineError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def refused(code: str) -> "pytest.RaisesExc[TrunklineError]":
    return pytest.RaisesExc(TrunklineError, check=lambda error: error.code == code)


@pytest.mark.parametrize(
    ("host", "origin", "good"),
    [
        ("localhost:1", None, True),
        ("[::1]:30088", "http://[::1]:30088", True),
        ("relay.example.org", "https://relay.example.org", True),
        ("Relay.Example.org:443", None, True),
        ("relay.example.org", "https://app.example.org", True),
        ("relay.example.org", "https://evil.example.org", False),
        ("relay.example.org", "https://relay.example.org.evil.org", False),
        ("relay.example.org", "null", False),
        ("relay.example.org", "http://[", False),
        ("evil.example.org", None, False),
        ("relay.example.org.evil.org", None, False),
        ("evil.org@relay.example.org:1@x", None, False),
        ("[", None, False),
        ("", None, False),
    ],
)
def test_only_its_own_names_and_pages_count(host: str, origin: str | None, good: bool) -> None:
    gate = Gate(Clock(), hosts=["relay.example.org"], origins=["https://app.example.org"])
    request = make_mocked_request("GET", "/", {"Host": host} | ({"Origin": origin} if origin else {}))
    if good:
        gate.check(request)
    else:
        with refused("bad_origin"):
            gate.check(request)


def test_an_address_may_come_so_often_and_again_after_a_while() -> None:
    clock = Clock()
    attempts = Attempts(rate=2, burst=3, clock=clock)
    for _ in range(3):
        attempts.take("192.0.2.1")
    with refused("rate_limited"):
        attempts.take("192.0.2.1")
    attempts.take("192.0.2.2")
    clock.now += 0.5
    attempts.take("192.0.2.1")
    with refused("rate_limited"):
        attempts.take("192.0.2.1")


def test_the_table_of_addresses_is_bounded() -> None:
    attempts = Attempts(rate=1, burst=1, clock=Clock())
    for number in range(MAX_ADDRESSES + 10):
        attempts.take(str(number))
    assert len(attempts) == MAX_ADDRESSES


@pytest.mark.parametrize(
    ("remote", "forwarded", "counts"),
    [
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("10.0.0.9", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.9", "1.2.3.4, 198.51.100.7", "198.51.100.7"),
        ("10.0.0.9", "198.51.100.7, 10.0.0.3", "198.51.100.7"),
        ("10.0.0.9", "", "10.0.0.9"),
        ("2001:db8:1:2:3::4", "", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "", "192.0.2.1"),
    ],
)
def test_only_proxies_of_ours_are_believed(remote: str, forwarded: str, counts: str) -> None:
    gate = Gate(Clock(), proxies=["10.0.0.0/8"])
    request = make_mocked_request("GET", "/", {"X-Forwarded-For": forwarded}).clone(remote=remote)
    assert gate.address(request) == counts


def test_networks_that_are_none_are_bad_settings() -> None:
    with refused("bad_settings"):
        Gate(Clock(), proxies=["10.0.0.1/8"])


def test_hosts_show_a_token_that_the_file_knows_now(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n\n{hashlib.sha256(b'secret').hexdigest()}  # ann's box\n")
    gate = Gate(Clock(), tokens=file)
    gate.check_token("Bearer secret")
    for shown in (None, "", "secret", "Basic secret", "Bearer ", "Bearer other", "Bearer " + "x" * 600):
        with refused("unauthorized"):
            gate.check_token(shown)
    with refused("unauthorized"):  # a hash is no token
        gate.check_token(f"Bearer {hashlib.sha256(b'secret').hexdigest()}")
    file.write_text("# nobody\n")
    with refused("unauthorized"):
        gate.check_token("Bearer secret")
    file.unlink()
    with refused("unauthorized"):
        gate.check_token("Bearer secret")


def test_without_a_file_every_host_may_come() -> None:
    Gate(Clock()).check_token(None)
