"""The state directory: where everything of one installation lives, private to its user."""

import os
from pathlib import Path

import msgspec

from trunkline_wire import TrunklineError
from trunkline_wire.ids import is_id, new_host_id

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600


class Home(msgspec.Struct, frozen=True):
    """Paths below the state directory. `prepare` makes the directories; nothing here reads the environment."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def socket(self) -> Path:
        return self.root / "gateway.sock"

    @property
    def gateway(self) -> Path:
        """Where the gateway says which address it took."""
        return self.root / "gateway.json"

    @property
    def token(self) -> Path:
        return self.root / "token"

    @property
    def host_file(self) -> Path:
        return self.root / "host.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    def prepare(self) -> None:
        """Make the directories, readable for their owner alone. Raises `bad_settings` if the disk refuses."""
        try:
            for directory in (self.root, self.logs):
                directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            if self.root.stat().st_mode & 0o077:
                self.root.chmod(PRIVATE_DIRECTORY)
        except OSError as error:
            raise TrunklineError(
                "bad_settings",
                f"the state directory {str(self.root)!r} can't be made: {error.strerror}; choose another with --home",
                home=str(self.root),
            ) from error


class _Host(msgspec.Struct, frozen=True):
    id: str


def host_id(home: Home) -> str:
    """This host's id: minted once, then read from the state directory. Raises `bad_settings` for a damaged file."""
    try:
        raw = home.host_file.read_bytes()
    except FileNotFoundError:
        host = _Host(new_host_id())
        write_private(home.host_file, msgspec.json.encode(host))
        return host.id
    try:
        host = msgspec.json.decode(raw, type=_Host)
    except msgspec.MsgspecError as error:
        raise _damaged(home.host_file) from error
    if not is_id(host.id, "hst"):
        raise _damaged(home.host_file)
    return host.id


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable for its owner alone: a reader sees the old or the new, never a half."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _damaged(path: Path) -> TrunklineError:
    return TrunklineError(
        "bad_settings",
        f"{str(path)!r} does not hold a host's id; restore it from a backup (sessions are bound to it), "
        "or delete it to become a new host",
    )
