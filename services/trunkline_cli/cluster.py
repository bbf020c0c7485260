"""The checks of `trunkline doctor --cluster`: each says what it found in the log's cluster and, where that is not well, what
to do. Pure but for `run_cluster_checks`, which asks the server.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

import msgspec
import nats.errors
from nats.js.errors import ServiceUnavailableError

from trunkline_bus import jsapi, kv, topology
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_bus.places import Lag, lags
from trunkline_cli.checks import FULL_AT, Finding
from trunkline_wire import TrunklineError, subjects

MANY_CONSUMERS: Final = 2_000
"""Of one stream: a consumer costs its server memory, and in a cluster an election of its own."""
LAGS: Final = 1_000
"""Messages that a replica may be behind while it catches up."""
BEHIND: Final = 5_000
"""Events that a projection may be behind while the log is busy."""
SILENT_S: Final = 2.0
"""Seconds after which a stream has no leader."""
ANSWERS_S: Final = 1.0
"""Seconds that services have to answer."""
PIECES: Final = ("projector", "teams")
"""Services that work by lease: without a holder nobody does their work."""


_UNKNOWN: Final = {"messages": 0, "bytes": 0}


class Told(msgspec.Struct, frozen=True):
    """What a service says of itself (ADR-32)."""

    name: str = ""
    id: str = ""
    version: str = ""


async def run_cluster_checks(bus: Bus) -> AsyncIterator[Finding]:
    """All checks of the cluster, each as soon as it is done. `bus` is the administrator's."""
    yield await _account(bus)
    infos = {info["config"]["name"]: info for info in await _streams(bus)}
    events = infos.get(subjects.EVENTS)
    if events is None:
        yield Finding(check="log", state="fail", found="there is none", advice="trunkline topology apply")
        return
    for stream in topology.STREAMS:
        info = infos.get(stream.name)
        if info is not None:
            for finding in check_stream(info, events["config"]["num_replicas"] if stream.replicated else 1):
                yield finding
    if all(info["state"] is not _UNKNOWN for info in infos.values()):
        yield await _topology(bus)
    projections = {lag.name: lag for lag in await lags(bus)}
    for name in ("sessions", "pages", "asks", "teams"):
        yield _projection(name, projections.get(name))
    for finding in check_leases(entry.key for entry in await kv.entries(bus, subjects.KV_LEASES)):
        yield finding
    for finding in check_services(await _services(bus)):
        yield finding


def check_stream(info: dict[str, Any], replicas: int) -> Iterator[Finding]:
    """One stream by its STREAM.INFO: leader, replicas, limits, consumers."""
    name, state, config = info["config"]["name"], info["state"], info["config"]
    cluster: dict[str, Any] = info.get("cluster") or {}
    others: list[dict[str, Any]] = cluster.get("replicas") or []
    used, limit = int(state["bytes"]), int(config.get("max_bytes") or -1)
    part = used / limit if limit > 0 else 0.0
    led = f"led by {cluster['leader']}, " if cluster.get("leader") else ""
    of_limit = f" ({part:.0%} of its limit)" if limit > 0 else ""
    found = f"{led}R{config['num_replicas']}, {state['messages']} messages, {used} bytes{of_limit}, {state.get('consumer_count', 0)} consumers"
    check, quorum = f"stream {name}", (len(others) + 1) // 2 + 1
    gone = [one["name"] for one in others if one.get("offline")]
    late = [f"{one['name']} by {one.get('lag', 0)}" for one in others if not one.get("offline") and _is_late(one)]
    there = len(others) + 1 - len(gone)
    if cluster and not cluster.get("leader"):
        yield Finding(
            check=check,
            state="fail",
            found="it has no leader",
            advice="start the servers that are away: two of three must see each other",
        )
    elif gone:
        lost = there <= quorum
        yield Finding(
            check=check,
            state="fail" if lost else "warn",
            found=f"{found}; {', '.join(gone)} away, {there} of {len(others) + 1} there",
            advice="start it before another one goes: one more and the log takes no writes" if lost else "start it",
        )
    elif late:
        yield Finding(
            check=check,
            state="warn",
            found=f"{found}; behind: {', '.join(late)}",
            advice="wait: it catches up; if not, look at its disk",
        )
    elif config["num_replicas"] < replicas:
        yield Finding(
            check=check, state="warn", found=f"{found}; EVENTS has {replicas} copies", advice="trunkline topology plan"
        )
    elif part >= FULL_AT:
        yield Finding(
            check=check,
            state="fail",
            found=found,
            advice="trunkline topology apply --max-bytes N, archive or erase sessions",
        )
    elif state.get("consumer_count", 0) > MANY_CONSUMERS:
        yield Finding(
            check=check,
            state="warn",
            found=found,
            advice="who makes so many? nats consumer ls; each gateway needs one per watched session",
        )
    else:
        yield Finding(check=check, state="ok", found=found)


def _is_late(replica: dict[str, Any]) -> bool:
    return not replica.get("current", True) or replica.get("lag", 0) > LAGS


def check_leases(keys: Iterable[str]) -> Iterator[Finding]:
    """Who works by lease, and how many sessions have an owner."""
    kinds: Counter[str] = Counter()
    for key in keys:
        head, _, rest = key.partition(".")
        if rest.startswith("replica."):
            kinds[f"{head} replicas"] += 1
        elif head in PIECES:
            kinds[head] += 1
        elif key.startswith("ses_"):
            kinds["sessions"] += 1
    for name in PIECES:
        if not kinds[name]:
            yield Finding(
                check=f"leases of {name}",
                state="fail",
                found="nobody does its work",
                advice=f"start a replica of trunkline_{name}",
            )
    held = ", ".join(f"{count} of {name}" for name, count in sorted(kinds.items()))
    yield Finding(check="leases", state="ok", found=held or "none")


def check_services(told: list[Told]) -> Iterator[Finding]:
    """Which services answer, and in which versions."""
    ours = [one for one in told if one.name.startswith("trunkline-")]
    counts: Counter[tuple[str, str]] = Counter((one.name.removeprefix("trunkline-"), one.version) for one in ours)
    found = ", ".join(f"{count} {name} {version}" for (name, version), count in sorted(counts.items()))
    versions = {version for _, version in counts}
    missing = [
        name for name in ("gateway", "permissions", "projector", "adapters") if name not in {n for n, _ in counts}
    ]
    if missing:
        yield Finding(
            check="services",
            state="fail",
            found=f"{found or 'none'}; no {', '.join(missing)}",
            advice="start them; see their logs",
        )
    elif len(versions) > 1:
        yield Finding(
            check="services",
            state="warn",
            found=found,
            advice="an upgrade is under way: let it end, readers before writers",
        )
    else:
        yield Finding(check="services", state="ok", found=found)


async def _account(bus: Bus) -> Finding:
    try:
        info: dict[str, Any] = await jsapi.request(bus.js_read, "INFO")
    except nats.errors.TimeoutError:
        return Finding(
            check="account", state="warn", found="no answer", advice="use the administrator's key: TRUNKLINE_NATS_SEED"
        )
    limit = int(info.get("limits", {}).get("max_storage", -1))
    used = int(info.get("storage", 0))
    found = f"{info.get('streams', 0)} streams, {info.get('consumers', 0)} consumers, {used} bytes stored"
    if limit > 0 and used / limit >= FULL_AT:
        return Finding(
            check="account", state="fail", found=f"{found} of {limit}", advice="raise the account's max_file"
        )
    return Finding(check="account", state="ok", found=found)


async def _streams(bus: Bus) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    seen = 0
    while True:
        answer: dict[str, Any] = await jsapi.request(bus.js_read, "STREAM.NAMES", {"offset": seen})
        names: list[str] = answer.get("streams") or []
        for name in names:
            seen += 1
            try:
                info = await jsapi.request(bus.js_read, f"STREAM.INFO.{name}", wait=SILENT_S)
            except (nats.errors.TimeoutError, ServiceUnavailableError):
                # Its one server, or most of them, are away.
                info = {"config": {"name": name, "num_replicas": 1}, "state": _UNKNOWN, "cluster": {"leader": ""}}
            found.append(info)
        if not names or seen >= answer.get("total", 0):
            return found


async def _topology(bus: Bus) -> Finding:
    try:
        changes = [change for change in await topology.plan(bus.js_read) if change.verb != "none"]
    except TrunklineError as error:
        return Finding(
            check="topology", state="warn", found=error.message, advice="mend what is above, then look again"
        )
    if any(change.refused for change in changes):
        return Finding(
            check="topology",
            state="fail",
            found=f"{len(changes)} differences, some of them can't be mended",
            advice="trunkline topology plan",
        )
    if changes:
        return Finding(
            check="topology", state="warn", found=f"{len(changes)} differences", advice="trunkline topology plan"
        )
    return Finding(check="topology", state="ok", found=f"as this version wants it, schema {topology.SCHEMA}")


def _projection(name: str, lag: Lag | None) -> Finding:
    check = f"projection {name}"
    if lag is None:
        return Finding(check=check, state="warn", found="it has never run", advice="start the service that keeps it")
    behind, frozen = lag.behind, lag.frozen
    found = f"version {lag.version}, {lag.parts} parts, {behind} events behind, {len(frozen)} sessions stand still"
    if behind > BEHIND:
        return Finding(
            check=check,
            state="warn",
            found=found,
            advice="is its service at work? more replicas, more parts (TRUNKLINE_PROJECTOR_PARTS)",
        )
    if frozen:
        return Finding(
            check=check, state="warn", found=found, advice=f"see the dead letters: {', '.join(sorted(frozen)[:3])}"
        )
    return Finding(check=check, state="ok", found=found)


async def _services(bus: Bus) -> list[Told]:
    told: list[Told] = []

    def take(message: Received) -> None:
        try:
            told.append(msgspec.json.decode(message.data, type=Told))
        except msgspec.MsgspecError as error:
            raise TrunklineError("bad_frame", f"a service says what is no INFO: {error}") from error

    connection = bus.reading
    inbox = connection.new_inbox()
    answers = await connection.subscribe_direct(inbox, take)
    try:
        await connection.publish("$SRV.INFO", b"", reply=inbox)
        await asyncio.sleep(ANSWERS_S)
    finally:
        await answers.unsubscribe()
    return told
