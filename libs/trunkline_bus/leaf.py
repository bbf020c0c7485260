"""A server that reaches a hub: as its leaf, by a connection outwards, its events are mirrored there for the hub's own programs.

The leaf's connection lives in an account of its own. What may be asked of the log by it is listed: to read EVENTS, and nothing else; nobody at the hub can write here.
At the hub the mirror is a stream of its own in the hub's JetStream domain: it keeps what it has while the link is cut, and catches up after.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
from nats.js import JetStreamContext

from trunkline_bus import jsapi
from trunkline_bus.credentials import allow, ensure_keys
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import check_token

ACCOUNT: Final = "LEAF"
SEED: Final = "TRUNKLINE_LEAF_SEED"
"""The variable that the server's configuration takes the leaf's key from."""
_FLOW: Final = "$JS.FC.>"
"""Where a mirror says that it has taken what it was sent."""
_REPLIES: Final = "$JSC.R.*"
"""Where a server that mirrors hears what became of its questions."""
_API: Final = "$JS.API"
_ASKS: Final = (
    f"STREAM.INFO.{subjects.EVENTS}",
    f"CONSUMER.CREATE.{subjects.EVENTS}",
    f"CONSUMER.CREATE.{subjects.EVENTS}.>",
    f"CONSUMER.DELETE.{subjects.EVENTS}.*",
)


class Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """`url` of the hub's port for leaves (`tls://hub:7422`), `name` of this server there, `seed_file` its key, `ca_file` who vouches for the hub."""

    url: str
    name: str
    seed_file: Path
    ca_file: Path | None = None


def leaf_key(directory: Path) -> Path:
    """The key of the server in `directory` for its hub, made where it is missing."""
    return ensure_keys(directory / "keys", ["leaf"])["leaf"]


def with_leaf(accounts: dict[str, Any], account: str, name: str) -> dict[str, Any]:
    """The accounts of a server, and that of its leaf's connection, to which `account` gives its events to read."""
    api, delivered = subjects.leaf_api(name), subjects.leaf_events(name)
    friends = {"accounts": [ACCOUNT]}
    gives = [
        *({"service": f"{_API}.{ask}", "response_type": "stream", **friends} for ask in _ASKS),
        {"service": _FLOW, **friends},
        {"stream": f"{delivered}.>", **friends},
    ]
    takes = [
        *({"service": {"account": account, "subject": f"{_API}.{ask}"}, "to": f"{api}.{ask}"} for ask in _ASKS),
        {"service": {"account": account, "subject": _FLOW}},
        {"stream": {"account": account, "subject": f"{delivered}.>"}},
    ]
    whole = accounts[account]
    return {**accounts, account: {**whole, "exports": [*whole["exports"], *gives]}, ACCOUNT: {"imports": takes}}


def remote(leaf: Leaf) -> str:
    """The `leafnodes` block of the server. The key itself stands in the server's environment alone (`environment`)."""
    tls = {"ca_file": str(leaf.ca_file)} if leaf.ca_file is not None else None
    there = {"url": leaf.url, "account": ACCOUNT, **({"tls": tls} if tls else {})}
    fields = ", ".join(f"{name}: {json.dumps(value)}" for name, value in there.items())
    return f"leafnodes {{ remotes: [{{ {fields}, nkey: ${SEED} }}] }}"


def environment(leaf: Leaf) -> dict[str, str]:
    """What the server needs beside its configuration. Raises TrunklineError `bad_settings`."""
    try:
        seed, mode = leaf.seed_file.read_text().strip(), leaf.seed_file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise TrunklineError("bad_settings", f"the leaf's key can't be read: {error}") from error
    if mode & 0o077:
        raise TrunklineError("bad_settings", f"{str(leaf.seed_file)!r} can be read by others: chmod 600 it")
    # The server reads the variable as a value of its configuration.
    return {SEED: json.dumps(seed)}


def hub_user(name: str, key: str) -> dict[str, Any]:
    """The user of the leaf `name` for an account of the hub: it may bring its events there, and say nothing else."""
    api, delivered = subjects.leaf_api(name), subjects.leaf_events(name)
    return {
        "nkey": key,
        "permissions": {"publish": allow((f"{delivered}.>", _REPLIES)), "subscribe": allow((f"{api}.>", _FLOW))},
    }


async def mirror(js: JetStreamContext, name: str, *, replicas: int = 1, max_bytes: int = -1) -> str:
    """At the hub: the stream that has the events of the leaf `name`; returns its name. It is made, or set as is said here.

    Raises nats.js.errors.APIError with the hub's own words.
    """
    stream = subjects.leaf_mirror(check_token(name))
    config = {
        "name": stream,
        "storage": "file",
        "num_replicas": replicas,
        "max_bytes": max_bytes,
        "allow_direct": True,
        "deny_delete": True,
        "mirror": {
            "name": subjects.EVENTS,
            "external": {"api": subjects.leaf_api(name), "deliver": subjects.leaf_events(name)},
        },
    }
    verb = "CREATE" if await jsapi.stream_info(js, stream) is None else "UPDATE"
    await jsapi.request(js, f"STREAM.{verb}.{stream}", config, wait=10.0)
    return stream
