"""`trunkline relay`: the relay that hosts and devices meet at, and this host's way to it."""

import os
import sys
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  trunkline relay serve                                     on this machine, at http://127.0.0.1:30084, to try it
  trunkline relay token ~/relay-tokens                      lets one host in: prints its token, keeps only the hash
  trunkline relay serve --bind 0.0.0.0 --hosts relay.example.org --url https://relay.example.org --tokens ~/relay-tokens
  trunkline relay serve … --certificate chain.pem --key key.pem      with TLS of its own; else put a proxy with TLS before it
  trunkline relay serve … --nats-url nats://nats:4222 --nats-seed relay.nk     one of several that are one relay
  trunkline relay status                                    on a host: whether devices can come, and if not, why

Hosts connect to it with `url` of [relay] in their trunkline.toml, devices by the links of `trunkline pair`. It needs no disk, no
database and no keys: it can't read what it carries. Behind a proxy, name the proxy's network (`--proxies 10.0.0.0/8`), or all
devices count as one address. Settings may also stand in trunkline.toml below [relay_server], or in TRUNKLINE_RELAY_SERVER_<NAME>.

Health is at /ready and metrics at /metrics of `--http-port`. A relay that several share is a step of deploy/README.md.
"""


@click.group(epilog=EPILOG)
def relay() -> None:
    """Serve the relay by which devices anywhere reach hosts without an open port; see how this host is connected to one."""


@relay.command(epilog=EPILOG)
@click.option("--bind", metavar="ADDRESS", help="Where it listens (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Its port (default: 30084); 0 takes any free one.")
@click.option("--hosts", metavar="NAMES", help="Names by which it is reached (comma separated); any other is refused.")
@click.option("--url", metavar="URL", help="Its address for people, which goes into pairing links.")
@click.option("--origins", metavar="URLS", help="Pages besides its own that may connect.")
@click.option(
    "--tokens", type=click.Path(path_type=Path), help="File of the tokens' hashes; without it any host may come."
)
@click.option("--proxies", metavar="NETWORKS", help="Proxies before it, whose X-Forwarded-For is believed.")
@click.option("--rate", type=float, help="Connections a second that one address may make (default: 5).")
@click.option("--burst", type=float, help="Connections that one address may make at once (default: 200).")
@click.option("--max-connections", type=click.IntRange(1), help="Of hosts and devices together (default: 20000).")
@click.option("--certificate", type=click.Path(path_type=Path), help="TLS certificate with its chain (PEM).")
@click.option("--key", type=click.Path(path_type=Path), help="The certificate's key.")
@click.option("--app", type=click.Path(path_type=Path), help="Folder of a built app for browsers.")
@click.option("--nats-url", metavar="URL", help="NATS, over which several processes are one relay.")
@click.option("--nats-seed", type=click.Path(path_type=Path), help="nkey seed file of the NATS user `relay`.")
@click.option("--http-host", metavar="ADDRESS", help="Where health and metrics are (default: 127.0.0.1).")
@click.option("--http-port", type=click.IntRange(0, 65535), help="Their port; 0 takes any free one.")
@click.option("--home", type=click.Path(path_type=Path), help="Directory of trunkline.toml (default: ~/.trunkline).")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="How much the log says.")
@click.option("--check", is_flag=True, help="Print the settings in force, and end.")
def serve(**options: Any) -> None:
    """Serve the relay until Ctrl-C.

    A host proves its key and says which devices may come; a device proves its key and is let through to its host. What they say
    goes by as envelopes that the relay can't open. It keeps nothing: when it ends, both come again.
    """
    flags: list[str] = []
    for name, value in options.items():
        if value is not None and value is not False:
            flag = f"--{name.replace('_', '-')}"
            flags.append(flag if value is True else f"{flag}={value}")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "trunkline_relay.server", *flags])  # noqa: S606 - no shell is wanted


@relay.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", default="", help="Whose it is, for those who read the file.")
def token(file: Path, name: str) -> int:
    """Let one more host in: print a new token, and add its hash to FILE.

    The relay reads FILE anew at each host that comes. To put a host out, delete its line; a host that is connected stays until
    it comes again.
    """
    import hashlib

    from trunkline_wire import TrunklineError
    from trunkline_wire.ids import new_token

    made = new_token()
    note = f"  # {' '.join(name.split())}" if name.strip() else ""
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as out:
            out.write(f"{hashlib.sha256(made.encode()).hexdigest()}{note}\n")
    except OSError as error:
        raise TrunklineError("bad_settings", f"{str(file)!r} can't be written: {error.strerror}") from error
    click.echo(made)
    return 0


@relay.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def status(as_json: bool, home: Path | None) -> int:
    """Say whether devices can reach this host by its relay. Exit code 1 where they can't."""
    from trunkline_cli.context import finish

    return finish(_status(home, as_json))


async def _status(home: Path | None, as_json: bool) -> int:
    from trunkline_cli.discovery import home_directory
    from trunkline_cli.output import ndjson, safe, table
    from trunkline_cli.relay_door import answer, door, say

    async with door(home_directory(home)) as (reader, writer):
        say(writer, {"do": "status"})
        said = await answer(reader)
    del said["type"]
    if as_json:
        ndjson(said)
    else:
        way = f"{said['url'] or 'no address yet'} ({said['kind']})"
        rows = [
            ("connected", "yes" if said["connected"] else f"no: {safe(said['trouble'])}"),
            ("relay", safe(way)),
            ("host", f"{safe(said['name'])}, Trunkline {said['version']}"),
            ("fingerprint", said["fingerprint"]),
            ("devices", str(said["devices"])),
            ("connections", str(said["visits"])),
        ]
        table(["", ""], rows)
    return 0 if said["connected"] else 1
