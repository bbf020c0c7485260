"""The worker process: a worker host with all installed adapters."""

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trunkline_adapters.settings import AdaptersSettings
from trunkline_agentkit.death import become_subreaper
from trunkline_agentkit.host import WorkerHost
from trunkline_agentkit.protocol import BackendAdapter
from trunkline_agentkit.registry import installed, load
from trunkline_agentkit.settings import OwnerSettings
from trunkline_bus.connection import Bus
from trunkline_service import Service
from trunkline_wire import TrunklineError
from trunkline_wire.ids import is_id, new_host_id

log = logging.getLogger(__name__)


async def run_app(service: Service[AdaptersSettings]) -> None:
    """Runs until the service is to stop. Descendants of agents stay in this process's tree."""
    become_subreaper()
    settings = service.settings
    host = WorkerHost(
        service.bus,
        settings.home,
        await asyncio.to_thread(host_id, settings.home),
        load_adapters(settings.only),
        settings.of_owner(),
    )
    service.health.facts["sessions"] = lambda: len(host.sessions)
    service.health.facts["worker"] = lambda: host.worker
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_announce(service, ready))
        await host.run(service.stopping, ready)
        ready.set()


async def _announce(service: Service[AdaptersSettings], ready: asyncio.Event) -> None:
    await ready.wait()
    if not service.stopping.is_set():
        service.ready()


def for_test(
    bus: Bus, home: Path, adapters: Mapping[str, BackendAdapter], settings: OwnerSettings | None = None
) -> WorkerHost:
    """The same worker host in a test's own process, on a bus that is open."""
    return WorkerHost(bus, home, host_id(home), adapters, settings)


def load_adapters(only: list[str]) -> dict[str, BackendAdapter]:
    """The adapters named, or all; one that can't be loaded is left out and logged, unless it was named."""
    found: dict[str, BackendAdapter] = {}
    for name in only or installed():
        try:
            found[name] = load(name)
        except TrunklineError as error:
            if only:
                raise
            log.warning("adapter_left_out", extra={"adapter": name, "error": error.message})
    return found


class _Host(msgspec.Struct, frozen=True):
    id: str


def host_id(home: Path) -> str:
    """This host's id, minted once. Raises TrunklineError `bad_settings` for a damaged file."""
    path = home / "host.json"
    if not path.exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_name(f".host.json.{os.getpid()}")
        beside.write_bytes(msgspec.json.encode(_Host(new_host_id())))
        try:
            os.link(beside, path)  # the first of several wins
        except FileExistsError:
            pass
        finally:
            beside.unlink()
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Host)
    except (OSError, msgspec.MsgspecError) as error:
        raise TrunklineError("bad_settings", f"{str(path)!r} does not hold a host's id: {error}") from error
    if not is_id(found.id, "hst"):
        raise TrunklineError("bad_settings", f"{str(path)!r} does not hold a host's id: restore it from a backup")
    return found.id
