"""The services of one host: which programs run, with what environment, and how their readiness shows."""

import asyncio
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from trunkline_bus.credentials import extension_user
from trunkline_supervisor.child import ChildSpec, Probe
from trunkline_supervisor.home import Home
from trunkline_supervisor.ports import free_port
from trunkline_wire import TrunklineError

PROBE_TIMEOUT = 2.0


class Service(msgspec.Struct, frozen=True):
    """`name` is the package's name behind `trunkline_` and the settings' prefix, `user` its NATS user, empty for none."""

    name: str
    user: str


SERVICES: Final = (
    Service("projector", "projector"),
    Service("permissions", "permissions"),
    Service("teams", "teams"),
    Service("gateway", "gateway"),
    Service("adapters", "worker"),
)


SHIPPED: Final = ("webhook", "notify", "chat", "push")
"""Extensions that come with Trunkline: one runs where `trunkline.toml` has its table."""
EXTENSION_RIGHTS: Final = ("viewer", "participant", "approver")


RELAY: Final = Service("relay", "")
"""The host's side of a relay: it has no NATS user, and runs where `trunkline.toml` has its table."""


def configured_extensions(home: Home) -> list[Service]:
    """The extensions of `[extensions.<name>]` that come with Trunkline. Raises `bad_settings` for an unreadable file."""
    tables = _tables(home).get("extensions", {})
    return [Service(f"ext-{name}", extension_user(name)) for name in SHIPPED if name in tables]


def configured_relay(home: Home) -> list[Service]:
    """The relay's service, if there is `[relay]`. Raises `bad_settings` for an unreadable file."""
    return [RELAY] if "relay" in _tables(home) else []


def _tables(home: Home) -> dict[str, Any]:
    path = home.root / "trunkline.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise TrunklineError("bad_settings", f"{str(path)!r} can't be read: {error}") from error


def chosen(names: Sequence[str]) -> list[Service]:
    """The services of these names, all for none. Raises `bad_settings` for an unknown one."""
    known = {service.name: service for service in SERVICES}
    if unknown := [name for name in names if name not in known]:
        raise TrunklineError("bad_settings", f"there is no service {unknown[0]!r}; known are {', '.join(known)}")
    return [known[name] for name in names] or list(SERVICES)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where the services of this start find each other. `seeds` are key files by NATS user, `drain_s` is
    how long a service may take to end.
    """

    nats_url: str
    seeds: Mapping[str, Path]
    gateway_port: int
    drain_s: float


def child_spec(service: Service, home: Home, endpoint: Endpoint, environment: Mapping[str, str]) -> ChildSpec:
    """How to run `service`. `environment` is the supervisor's own: the worker picks from it what agents may see."""
    port = free_port()
    env = {
        **environment,
        "TRUNKLINE_HOME": str(home.root),
        "TRUNKLINE_NATS_URL": endpoint.nats_url,
        "TRUNKLINE_HTTP_PORT": str(port),
        "TRUNKLINE_DRAIN_S": f"{endpoint.drain_s:g}",
        "PYTHONUNBUFFERED": "1",
    }
    env.pop("TRUNKLINE_NATS_SEED", None)
    if seed := endpoint.seeds.get(service.user):
        env["TRUNKLINE_NATS_SEED"] = str(seed)
    module = f"trunkline_{service.name}"
    if service.name.startswith("ext-"):
        module = f"trunkline_extensions.{service.name.removeprefix('ext-')}"
        env["TRUNKLINE_EXTENSIONS_GATEWAY"] = f"http://127.0.0.1:{endpoint.gateway_port}"
    if service.name == "gateway":
        env["TRUNKLINE_GATEWAY_PORT"] = str(endpoint.gateway_port)
    return ChildSpec(
        name=service.name,
        argv=[sys.executable, "-m", module],
        environment=env,
        log=home.log(service.name),
        probe=http_probe(service.name, port),
    )


class _Report(msgspec.Struct, frozen=True):
    service: str = ""
    status: str = ""


def http_probe(name: str, port: int) -> Probe:
    """Asks `/ready` on loopback, and checks that it is this service that answers and not a stranger on its port."""

    async def probe() -> bool:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(f"GET /ready HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
                    answer = await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
        head, _, body = answer.partition(b"\r\n\r\n")
        try:
            report = msgspec.json.decode(body, type=_Report)
        except msgspec.MsgspecError:
            return False
        return b" 200 " in head.split(b"\r\n", 1)[0] and report.service == name

    return probe
