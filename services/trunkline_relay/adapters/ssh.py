"""*ssh*: OpenSSH's remote forwarding to a machine of one's own, where a proxy with a certificate stands before the port.

`debug1: remote forward success for: listen 127.0.0.1:8443, connect 127.0.0.1:…` says that it stands.
"""

from trunkline_relay.adapters.local import LocalRelay
from trunkline_relay.adapters.tunnel import Command, Tunnel, checked_url
from trunkline_relay.settings import RelaySettings
from trunkline_wire import TrunklineError

OPTIONS = {
    "BatchMode": "yes",  # it asks nobody, and goes to no host that it does not know
    "ExitOnForwardFailure": "yes",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "ConnectTimeout": "15",
    "ControlPath": "none",  # a connection of its own: its end is to be seen
    "LogLevel": "DEBUG1",
}


def ssh(relay: LocalRelay, settings: RelaySettings) -> Tunnel:
    """Raises TrunklineError `bad_settings`."""
    public = checked_url(settings.url, "ssh")
    if not settings.ssh_to or settings.ssh_to.startswith("-"):
        raise TrunklineError("bad_settings", "ssh wants `ssh_to` of [relay]: where to (me@box.example.org)")
    options = dict(OPTIONS)
    if settings.ssh_known_hosts is not None:
        options["UserKnownHostsFile"] = str(settings.ssh_known_hosts)
    if settings.ssh_key is not None:
        options |= {"IdentityFile": str(settings.ssh_key), "IdentitiesOnly": "yes"}
    said = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]

    def command(port: int) -> Command:
        forward = f"{settings.ssh_listen}:127.0.0.1:{port}"
        to = ["-p", str(settings.ssh_port), "-R", forward, "--", settings.ssh_to]
        return Command([settings.program or "ssh", "-N", "-T", *said, *to])

    return Tunnel("ssh", relay, command, lambda line: public if "remote forward success for:" in line else None)
