"""What `trunkline up` can be told."""

from pathlib import Path

from trunkline_service.settings import Settings


class SupervisorSettings(Settings, frozen=True, kw_only=True):
    """An empty `nats_url` means a nats-server of its own, in the state directory."""

    nats_url: str = ""
    nats_seed: Path | None = None
    port: int | None = None
    """The gateway's port: None takes 30086 or the next free one, 0 any free one."""
    services: tuple[str, ...] = ()
    """The services to run, by name; none named means all."""
    demo: bool = False
    """Start a session with the demo agent once all is ready."""
    keep_awake: bool = False
    """Keep the machine from sleeping while a turn runs on this host."""
    drain_s: float = 8.0
    """Seconds that the services may take to finish before they are killed."""
    kill_s: float = 5.0
    """Seconds that a worker may take to obey `kill` before the supervisor does it."""
    store_key: Path | None = None
    """A file (0600, 32 characters or more) whose content encrypts what its nats-server stores; keep it elsewhere than the store."""
    start_s: float = 60.0
    """Seconds until everything must be ready."""
    leaf_url: str = ""
    """A hub's port for leaf nodes (`tls://hub.example:7422`), which gets this log's events; see `trunkline leaf`."""
    leaf_name: str = ""
    """What the hub calls this log."""
    leaf_ca: Path | None = None
    """The certificates that vouch for the hub, where the system's do not."""
