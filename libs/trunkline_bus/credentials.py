"""NATS users: a key for each service, and what each may publish and hear.

The services share the account TRUNKLINE. What a service writes by itself is limited to its own subjects, which keeps
mistakes from spreading; it is no wall against a service that was taken over, because a request to the JetStream API
may name any subject for its answer, and the server publishes it there. So `reader`, which is handed to programs of
others, lives in an account of its own: the answers to its requests stay in that account, and it can write nowhere.
So do the users of extensions, in a third account. What they ask of the gateway goes to `trunk.api.<name>.<right>.<method>`,
and the server lets only those rights through that the extension was given; what the gateway asks of them is `trunk.ext.<name>.>`.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import nkeys

from trunkline_wire import TrunklineError, subjects

ACCOUNT: Final = "TRUNKLINE"
READERS: Final = "READERS"
EXTENSIONS: Final = "EXTENSIONS"


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects that a user may publish to and subscribe to beside its own inbox; `answers` lets it answer requests."""

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    answers: bool = False


def reads(*streams: str) -> tuple[str, ...]:
    """What a Reader, direct gets and reads from the leader need of the API."""
    rights: list[str] = []
    for stream in streams:
        rights += [
            f"$JS.API.STREAM.INFO.{stream}",
            f"$JS.API.STREAM.MSG.GET.{stream}",
            f"$JS.API.DIRECT.GET.{stream}",
            f"$JS.API.DIRECT.GET.{stream}.>",
            f"$JS.API.CONSUMER.CREATE.{stream}.>",
            f"$JS.API.CONSUMER.INFO.{stream}.*",
            f"$JS.API.CONSUMER.MSG.NEXT.{stream}.*",
            f"$JS.API.CONSUMER.DELETE.{stream}.*",
        ]
    return tuple(rights)


def reads_buckets(*buckets: str) -> tuple[str, ...]:
    return reads(*(f"KV_{bucket}" for bucket in buckets))


def writes_buckets(*buckets: str) -> tuple[str, ...]:
    return tuple(f"$KV.{bucket}.>" for bucket in buckets)


_READS_LOG: Final = reads(subjects.EVENTS, f"OBJ_{subjects.BLOBS}")
_LOOKS_AT_THE_STORE: Final = ("$JS.API.INFO",)
_WRITES_BLOBS: Final = (f"$O.{subjects.BLOBS}.>",)
_DEAD_LETTERS: Final = (subjects.ALL_DEAD_LETTERS,)
_DISCOVERY: Final = ("$SRV.>", "trunk.health.*")
"""Services are found (ADR-32), and asked how they are."""
_ALL_BUCKETS: Final = (
    subjects.KV_TOKENS,
    subjects.KV_DEVICES,
    subjects.KV_SESSIONS,
    subjects.KV_PAGES,
    subjects.KV_ASKS,
    subjects.KV_TEAMS,
    subjects.KV_WORKSPACES,
    subjects.KV_POSITIONS,
    subjects.KV_LEASES,
    subjects.KV_WORKERS,
    subjects.KV_PRESENCE,
)
_PROJECTOR: Final = (subjects.KV_SESSIONS, subjects.KV_PAGES, subjects.KV_WORKSPACES)
_OF_PROJECTIONS: Final = (subjects.KV_POSITIONS, subjects.KV_LEASES)
_OF_WORKERS: Final = (subjects.KV_LEASES, subjects.KV_WORKERS)
_OF_GATEWAY: Final = (subjects.KV_TOKENS, subjects.KV_DEVICES, subjects.KV_PRESENCE)

GRANTS: Final[dict[str, Grants]] = {
    "admin": Grants(publish=(">",), subscribe=(">",)),
    "worker": Grants(
        publish=(
            subjects.ALL_OF_AGENTS,
            subjects.ALL_DELTAS,
            subjects.ALL_SPAWNS,
            subjects.ALL_OBSERVED,
            subjects.ALL_TERMINALS_OUT,
            *_DEAD_LETTERS,
            *writes_buckets(*_OF_WORKERS),
            *_WRITES_BLOBS,
            *_READS_LOG,
            *_LOOKS_AT_THE_STORE,
            *reads(subjects.COMMANDS, subjects.SPAWN),
            *reads_buckets(*_OF_WORKERS, subjects.KV_SESSIONS),
            f"$JS.ACK.{subjects.SPAWN}.>",
            f"$JS.API.CONSUMER.DURABLE.CREATE.{subjects.SPAWN}.*",
        ),
        subscribe=("trunk.host.*.*", subjects.ALL_TERMINALS_IN, subjects.ALL_TERMINALS_CTL, *_DISCOVERY),
        answers=True,
    ),
    "projector": Grants(
        publish=(
            *_DEAD_LETTERS,
            *writes_buckets(*_PROJECTOR, *_OF_PROJECTIONS),
            *_WRITES_BLOBS,
            *_READS_LOG,
            *reads_buckets(*_PROJECTOR, *_OF_PROJECTIONS),
        ),
        subscribe=_DISCOVERY,
        answers=True,
    ),
    "teams": Grants(
        publish=(
            subjects.ALL_TEAM_EVENTS,
            *_DEAD_LETTERS,
            *writes_buckets(subjects.KV_TEAMS, *_OF_PROJECTIONS),
            *_WRITES_BLOBS,
            *_READS_LOG,
            *reads(subjects.OBSERVED),
            *reads_buckets(subjects.KV_TEAMS, *_OF_PROJECTIONS),
        ),
        subscribe=_DISCOVERY,
        answers=True,
    ),
    "permissions": Grants(
        publish=(
            subjects.ALL_PERMISSIONS,
            subjects.ALL_SYSTEM,
            *_DEAD_LETTERS,
            *writes_buckets(subjects.KV_ASKS, *_OF_PROJECTIONS),
            *_WRITES_BLOBS,
            *_READS_LOG,
            *reads(subjects.COMMANDS, subjects.SYSTEM),
            *reads_buckets(subjects.KV_ASKS, subjects.KV_SESSIONS, *_OF_PROJECTIONS),
        ),
        subscribe=_DISCOVERY,
        answers=True,
    ),
    "gateway": Grants(
        publish=(
            subjects.ALL_COMMANDS,
            subjects.ALL_ANSWERS,
            subjects.ALL_SPAWNS,
            subjects.ALL_SYSTEM,
            subjects.ALL_OF_EXTENSIONS,
            "trunk.host.*.*",
            subjects.ALL_EXTENSION_CALLS,
            subjects.ALL_TERMINALS_IN,
            subjects.ALL_TERMINALS_CTL,
            *_DISCOVERY,
            *_DEAD_LETTERS,
            *writes_buckets(*_OF_GATEWAY),
            *_READS_LOG,
            *_LOOKS_AT_THE_STORE,
            *reads(subjects.DELTAS, subjects.COMMANDS, subjects.SPAWN, subjects.SYSTEM),
            *reads_buckets(*_ALL_BUCKETS),
        ),
        subscribe=(
            subjects.ALL_EVENTS,
            subjects.ALL_DELTAS,
            subjects.ALL_EXTENSION_REQUESTS,
            subjects.ALL_TERMINALS_OUT,
            *_DISCOVERY,
        ),
        answers=True,
    ),
    "relay": Grants(publish=(subjects.ALL_RELAYED,), subscribe=(subjects.ALL_RELAYED,), answers=True),
    "reader": Grants(
        publish=(
            f"$JS.API.DIRECT.GET.{subjects.EVENTS}",
            f"$JS.API.DIRECT.GET.{subjects.EVENTS}.>",
            f"$JS.API.CONSUMER.MSG.NEXT.{subjects.EVENTS}.*",
            f"$JS.ACK.{subjects.EVENTS}.>",
        ),
        subscribe=(subjects.ALL_EVENTS, subjects.ALL_DELTAS),
    ),
}
"""By user. `reader` hears what happens, gets any event by its sequence, and pulls from consumers that an admin made."""


def extension_user(name: str) -> str:
    """The NATS user of an extension, which is also the name of its service and of its seed file."""
    return f"ext-{name}"


def extension_grants(name: str, rights: Iterable[str]) -> Grants:
    """What the user of an extension may: `rights` are `events` (hear what happens), `emit`, and roles at the gateway."""
    user = extension_user(name)
    asks = tuple(f"trunk.api.{name}.{right}.>" for right in ("itself", *rights) if right != "events")
    hears = (subjects.ALL_EVENTS, subjects.ALL_DELTAS) if "events" in rights else ()
    discovery = ("$SRV.PING", "$SRV.INFO", "$SRV.STATS", f"$SRV.*.{user}", f"$SRV.*.{user}.*")
    return Grants(publish=asks, subscribe=(f"trunk.ext.{name}.>", *discovery, *hears), answers=True)


def ensure_keys(directory: Path, users: Iterable[str] = GRANTS) -> dict[str, Path]:
    """The seed file of each user in `directory` (0700), `<user>.nk` (0600); those that are missing are made."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    files = {user: directory / f"{user}.nk" for user in users}
    for file in files.values():
        if not file.exists():
            seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
            fresh = file.with_suffix(".new")
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(bytes(seed))
            fresh.replace(file)
    return files


def public_key(seed_file: Path) -> str:
    """The public key (`U…`) of a seed. Raises TrunklineError `bad_settings` for a file that is none."""
    try:
        pair = nkeys.from_seed(bytearray(seed_file.read_bytes().strip()))
        public: Any = pair.public_key  # bytes, whatever its annotation says
        return public.decode()
    except (OSError, ValueError, nkeys.NkeysError) as error:
        raise TrunklineError("bad_settings", f"{str(seed_file)!r} is not the seed of a NATS user: {error}") from error


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a log of their own on a shared server: `keys` are user -> public key, `extensions` user -> (key, grants).

    `max_store` limits what the log and its buckets may store, in bytes. A `name` of "" is that of a server with one log.
    """

    keys: Mapping[str, str]
    name: str = ""
    extensions: Mapping[str, tuple[str, Grants]] = {}
    max_store: int | None = None


def server_config(keys: Mapping[str, str], extensions: Mapping[str, tuple[str, Grants]] | None = None) -> str:
    """The `accounts` block of a nats-server for the users in `keys` (user -> public key), JSON inside.

    `extensions` are the users of extensions: user -> (public key, grants).
    Its streams live in the account TRUNKLINE: a server that had none before keeps its old streams elsewhere.
    """
    return tenants_config([Tenant(keys=keys, extensions=extensions or {})])


def accounts_block(accounts: Mapping[str, Any]) -> str:
    """As it stands in a server's configuration, JSON inside."""
    return f"accounts: {json.dumps(accounts, indent=2)}"


def tenants_config(tenants: Iterable[Tenant]) -> str:
    """The `accounts` block of a nats-server with a log for each tenant.

    Each has accounts of its own (`TRUNKLINE_<name>` and those of its readers and extensions), and nothing is exported from one
    tenant to another: streams, subjects and users of the same names do not meet.
    """
    accounts: dict[str, Any] = {}
    for tenant in tenants:
        accounts |= accounts_of(tenant)
    return accounts_block(accounts)


def accounts_of(tenant: Tenant) -> dict[str, Any]:
    """The accounts of one log, by name."""
    suffix = f"_{tenant.name}" if tenant.name else ""
    account, readers, extensions = ACCOUNT + suffix, READERS + suffix, EXTENSIONS + suffix
    insiders = [_user(user, key, GRANTS[user]) for user, key in tenant.keys.items() if user != "reader"]
    outsiders = [_user(user, key, GRANTS[user]) for user, key in tenant.keys.items() if user == "reader"]
    guests = [_user(user, key, grants) for user, (key, grants) in tenant.extensions.items()]
    listens, asks = GRANTS["reader"].subscribe, GRANTS["reader"].publish
    happens = [{"stream": {"account": account, "subject": subject}} for subject in listens]
    served, api = (subjects.ALL_EXTENSION_CALLS, "$SRV.>"), subjects.ALL_EXTENSION_REQUESTS
    # Without a list whoever knows its name could import it: only this tenant's readers may.
    friends = {"accounts": [readers, extensions]} if tenant.name else {}
    return {
        account: {
            "jetstream": "enabled" if tenant.max_store is None else {"max_file": tenant.max_store},
            "users": insiders,
            "exports": [
                *({"stream": subject, **friends} for subject in listens),
                *({"service": subject, "response_type": "stream", **friends} for subject in asks),
                {"service": api, "accounts": [extensions]},
            ],
            "imports": [{"service": {"account": extensions, "subject": subject}} for subject in served],
        },
        readers: {
            "users": outsiders,
            "imports": [*happens, *({"service": {"account": account, "subject": subject}} for subject in asks)],
        },
        extensions: {
            "users": guests,
            "exports": [{"service": subject, "response_type": "stream", "accounts": [account]} for subject in served],
            "imports": [*happens, {"service": {"account": account, "subject": api}}],
        },
    }


def _user(user: str, key: str, grants: Grants) -> dict[str, Any]:
    permissions: dict[str, Any] = {
        "publish": allow(grants.publish),
        "subscribe": allow((f"_INBOX_{user}.>", *grants.subscribe)),
    }
    if grants.answers:
        permissions["allow_responses"] = {"max": 100, "expires": "1m"}
    return {"nkey": key, "permissions": permissions}


def allow(rights: Iterable[str]) -> dict[str, list[str]]:
    """As a server's configuration wants it."""
    return {"allow": list(dict.fromkeys(rights))}
