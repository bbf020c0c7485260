"""The subjects, streams and buckets, by name. Nothing else spells a subject.

Five subjects a session: `agent.fact`, `agent.ask`, `permission`, `team` and its deltas; `ext` where extensions emit events. Types, turns and request
ids are never part of a subject (each subject costs the server about 340 B of memory).
"""

from functools import lru_cache
from typing import Final, Literal

import msgspec

from trunkline_wire.ids import check_id, check_token, partition

EVENTS: Final = "EVENTS"
DELTAS: Final = "DELTAS"
COMMANDS: Final = "COMMANDS"
SPAWN: Final = "SPAWN"
OBSERVED: Final = "OBSERVED"
SYSTEM: Final = "SYSTEM"
DEADLETTER: Final = "DEADLETTER"

KV_TOKENS: Final = "trunk_tokens"
KV_DEVICES: Final = "trunk_devices"
KV_SESSIONS: Final = "trunk_sessions"
KV_PAGES: Final = "trunk_pages"
KV_ASKS: Final = "trunk_asks"
KV_TEAMS: Final = "trunk_teams"
KV_WORKSPACES: Final = "trunk_workspaces"
KV_POSITIONS: Final = "trunk_positions"
KV_LEASES: Final = "trunk_leases"
KV_WORKERS: Final = "trunk_workers"
KV_PRESENCE: Final = "trunk_presence"
BLOBS: Final = "trunk_blobs"

RelayWay = Literal["up", "down", "end"]
Channel = Literal["agent.fact", "agent.ask", "permission", "team", "ext"]

ALL_EVENTS: Final = "trunk.ev.>"
ALL_DELTAS: Final = "trunk.delta.>"
ALL_COMMANDS: Final = "trunk.cmd.>"
ALL_ANSWERS: Final = "trunk.answer.>"
ALL_SPAWNS: Final = "trunk.spawn.>"
ALL_OBSERVED: Final = "trunk.obs.>"
ALL_SYSTEM: Final = "trunk.sys.>"
ALL_DEAD_LETTERS: Final = "trunk.dlq.>"
ALL_OF_AGENTS: Final = "trunk.ev.*.*.agent.>"
ALL_FACTS: Final = "trunk.ev.*.*.agent.fact"
ALL_TEAM_EVENTS: Final = "trunk.ev.*.*.team"
ALL_ASKS: Final = "trunk.ev.*.*.agent.ask"
ALL_PERMISSIONS: Final = "trunk.ev.*.*.permission"
ALL_TERMINALS_OUT: Final = "trunk.term.*.out.*"
ALL_TERMINALS_IN: Final = "trunk.term.*.in"
ALL_TERMINALS_CTL: Final = "trunk.term.*.ctl"
ALL_OF_EXTENSIONS: Final = "trunk.ev.*.*.ext"
ALL_EXTENSION_CALLS: Final = "trunk.ext.>"
ALL_EXTENSION_REQUESTS: Final = "trunk.api.>"
ALL_RELAYED: Final = "trunk.relay.>"
RELAYS_ALIVE: Final = "trunk.relay.alive"
"""Where the replicas of a relay say that they live, and which host has come to them."""

HEADER_ID: Final = "Trunk-Id"
HEADER_TYPE: Final = "Trunk-Type"
HEADER_TRACE: Final = "traceparent"
HEADER_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
HEADER_EXPECTED_FILTER: Final = "Nats-Expected-Last-Subject-Sequence-Subject"


def event(session: str, channel: Channel) -> str:
    return f"trunk.ev.{partition(session)}.{check_id(session, 'ses')}.{channel}"


def agent_fence(session: str) -> str:
    """The filter that fences a session's owner: byte-identical for all who may write there."""
    return f"trunk.ev.{partition(session)}.{check_id(session, 'ses')}.agent.>"


def partition_events(number: int) -> str:
    """All events of the sessions in a partition, for readers."""
    return f"trunk.ev.{number}.>"


def in_partition(events: str, number: int) -> str:
    """The filter `events` of all partitions, for readers of one."""
    return events.replace("trunk.ev.*.", f"trunk.ev.{number}.").replace(ALL_EVENTS, partition_events(number))


def session_events(session: str) -> str:
    """All of a session's events, for readers."""
    return f"trunk.ev.*.{check_id(session, 'ses')}.>"


def delta(session: str) -> str:
    return f"trunk.delta.{partition(session)}.{check_id(session, 'ses')}"


def session_deltas(session: str) -> str:
    return f"trunk.delta.*.{check_id(session, 'ses')}"


def command(session: str, user: str) -> str:
    return f"trunk.cmd.{check_id(session, 'ses')}.{check_token(user)}"


def session_commands(session: str) -> str:
    return f"trunk.cmd.{check_id(session, 'ses')}.*"


def answer(session: str, user: str) -> str:
    return f"trunk.answer.{check_id(session, 'ses')}.{check_token(user)}"


def session_answers(session: str) -> str:
    """The answers of all users."""
    return f"trunk.answer.{check_id(session, 'ses')}.*"


def spawn(host: str, adapter: str) -> str:
    """`host` is a host's id or `any`."""
    return f"trunk.spawn.{check_token(host)}.{check_token(adapter)}"


def host(host: str, method: str) -> str:
    """Where questions to a host go."""
    return f"trunk.host.{check_token(host)}.{check_token(method)}"


def observed(host: str) -> str:
    """Where what is seen on a host goes."""
    return f"trunk.obs.{check_token(host)}"


def system(kind: str) -> str:
    return f"trunk.sys.{check_token(kind)}"


def terminal_out(session: str, viewer: str) -> str:
    """The live bytes of a session's terminal for one program that hands them on, most often a gateway."""
    return f"trunk.term.{check_id(session, 'ses')}.out.{check_token(viewer)}"


def terminals_out(viewer: str) -> str:
    """Those of all sessions."""
    return f"trunk.term.*.out.{check_token(viewer)}"


def terminal_in(session: str) -> str:
    return f"trunk.term.{check_id(session, 'ses')}.in"


def terminal_ctl(session: str) -> str:
    return f"trunk.term.{check_id(session, 'ses')}.ctl"


def relay_open(host: str) -> str:
    """Where the replica of a relay that has the host is asked to let a device in."""
    return f"trunk.relay.open.{check_token(host)}"


def relay_visit(way: RelayWay, replica: str, sid: str) -> str:
    """What one replica of a relay has for another: a device's connection, by direction, and its end."""
    return f"trunk.relay.{way}.{check_token(replica)}.{check_token(sid)}"


def relay_visits(replica: str) -> str:
    """All of that for one replica."""
    return f"trunk.relay.*.{check_token(replica)}.*"


def dead_letter(service: str) -> str:
    return f"trunk.dlq.{check_token(service)}"


class Parsed(msgspec.Struct, frozen=True):
    """What a subject of a session says: the family (`ev`, `delta`, `cmd`, `answer`), the session, the rest."""

    family: str
    session: str
    rest: str


@lru_cache(maxsize=4096)
def parse(subject: str) -> Parsed | None:
    """The parts of a session's subject; None for any other subject."""
    tokens = subject.split(".")
    if len(tokens) < 4 or tokens[0] != "trunk":
        return None
    family = tokens[1]
    if family in ("ev", "delta"):
        return Parsed(family, tokens[3], ".".join(tokens[4:]))
    if family in ("cmd", "answer"):
        return Parsed(family, tokens[2], ".".join(tokens[3:]))
    return None


def leaf_api(leaf: str) -> str:
    """Where a hub asks the leaf of this name for its events."""
    return f"trunk.leaf.{check_token(leaf)}.api"


def leaf_events(leaf: str) -> str:
    """Where the events of a leaf come to its hub."""
    return f"trunk.leaf.{check_token(leaf)}.events"


def leaf_mirror(leaf: str) -> str:
    """The stream of a hub that has the events of a leaf."""
    return f"{EVENTS}_of_{check_token(leaf)}"
