"""Finding the gateway: the running instance's unix socket by `state.json`, or a URL and a token."""

import os
from pathlib import Path

import click
import msgspec

from trunkline_client.address import Address
from trunkline_wire import TrunklineError

START_IT = "start it with `trunkline up`, or point TRUNKLINE_URL at a gateway elsewhere"


class RunningState(msgspec.Struct, frozen=True, kw_only=True):
    """What this program needs of `state.json`. `start` is in seconds since the epoch."""

    pid: int
    start: float = 0.0
    version: str = ""
    host: str = ""
    gateway: str
    nats: str = ""
    socket: str = ""
    ready: bool = False


def home_directory(given: Path | None = None) -> Path:
    """The state directory: the flag, TRUNKLINE_HOME, or ~/.trunkline."""
    return (given or Path(os.environ.get("TRUNKLINE_HOME") or "~/.trunkline")).expanduser()


def chosen_host() -> str | None:
    """The paired host that this command line names, or TRUNKLINE_HOST."""
    context = click.get_current_context(silent=True)
    return context.find_root().params.get("host") or None if context is not None else None


def running_state(home: Path) -> RunningState:
    """The running instance of a state directory. Raises `not_running` if there is none, `unsupported` for a host elsewhere."""
    if host := chosen_host():
        raise TrunklineError("unsupported", f"this needs the machine itself, and goes not to {host!r}: do it there")
    path = home / "state.json"
    try:
        state = msgspec.json.decode(path.read_bytes(), type=RunningState)
    except FileNotFoundError:
        raise TrunklineError("not_running", f"Trunkline does not run in {str(home)!r}: {START_IT}") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise TrunklineError("not_running", f"{str(path)!r} can't be read ({error}): {START_IT}") from error
    if not alive(state.pid):
        raise TrunklineError(
            "not_running", f"Trunkline ran in {str(home)!r} as process {state.pid}, which has ended: {START_IT}"
        )
    return state


def alive(pid: int) -> bool:
    """Whether a process of this number exists; the socket tells whether it is the right one."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def find_gateway(home: Path) -> Address:
    """The paired host that was chosen; TRUNKLINE_URL (with TRUNKLINE_TOKEN) if set; else the running instance.

    Raises `not_running`, `unpaired`.
    """
    if host := chosen_host():
        from trunkline_cli import hosts

        return hosts.address(home, host)
    if url := os.environ.get("TRUNKLINE_URL"):
        token = os.environ.get("TRUNKLINE_TOKEN") or _token_file(home)
        return Address(url=url.rstrip("/"), token=token)
    state = running_state(home)
    socket = Path(state.socket) if state.socket else home / "gateway.sock"
    if socket.exists():
        return Address(url="http://localhost", socket=socket)
    return Address(url=state.gateway.rstrip("/"), token=_token_file(home))


def gateway_url(home: Path) -> str:
    """The gateway's address as a browser of this machine reaches it. Raises `not_running`."""
    return os.environ.get("TRUNKLINE_URL") or running_state(home).gateway


def _token_file(home: Path) -> str | None:
    try:
        return (home / "token").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
