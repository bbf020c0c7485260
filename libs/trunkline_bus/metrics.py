"""The registry of Prometheus metrics: every name that Trunkline exports is made here, and dashboards use no other.

No label holds a session, a person or a text of an agent's: what has no end of its own goes through a `Capped`.
"""

from typing import Final, NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from trunkline_bus.labels import Capped

MODELS: Final = Capped(50)
WORKSPACES: Final = Capped(100)
TOOLS: Final = Capped(50)
DRIFTS: Final = Capped(200)

SERVICE_INFO: Final = Gauge("trunkline_service_info", "1, with the service's name and version.", ["service", "version"])
SERVICE_READY: Final = Gauge(
    "trunkline_service_ready", "Whether the service does its work (1) or not (0).", ["service"]
)
LOG_RECORDS: Final = Counter(
    "trunkline_log_records_total", "Lines of the log of the process, by level (warning, error, critical).", ["level"]
)
LOOP_LAG: Final = Histogram(
    "trunkline_loop_lag_seconds",
    "Seconds by which a timer of the event loop came late: how busy the process is.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)

BUS_CONNECTED: Final = Gauge(
    "trunkline_bus_connected", "Whether the connection to NATS stands (1) or not (0).", ["connection"]
)
BUS_DISCONNECTS: Final = Counter(
    "trunkline_bus_disconnects_total", "Times the connection to NATS was lost.", ["connection"]
)
BUS_ERRORS: Final = Counter(
    "trunkline_bus_errors_total",
    "Errors that NATS reported outside of any call, by kind (permission, slow_consumer, connection, other).",
    ["connection", "kind"],
)
APPENDS: Final = Counter("trunkline_appends_total", "Events appended to the log.", ["type"])
APPEND_SECONDS: Final = Histogram(
    "trunkline_append_seconds",
    "Seconds from the first send of an event to its acknowledgement.",
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
APPEND_UNKNOWN: Final = Counter(
    "trunkline_append_unknown_outcomes_total",
    "Appends whose outcome had to be looked up at the leader, by reason "
    "(timeout, disconnected, conflict, in_flight, unavailable, full, refused).",
    ["reason"],
)
READER_DELAY: Final = Histogram(
    "trunkline_reader_delay_seconds",
    "Seconds from when the log had an event to when this consumer took it, the oldest of each batch.",
    ["consumer"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
READER_LAG_EVENTS: Final = Gauge(
    "trunkline_reader_lag_events", "Events that this consumer has yet to take, as far as it knows.", ["consumer"]
)
READER_LAG_SECONDS: Final = Gauge(
    "trunkline_reader_lag_seconds",
    "Seconds since the last event that this consumer has taken was stored, 0 where none waits.",
    ["consumer"],
)
REDELIVERIES: Final = Counter(
    "trunkline_redeliveries_total", "Messages of a work queue that somebody was given before.", ["stream"]
)
READER_RECREATED: Final = Counter(
    "trunkline_reader_recreated_total",
    "Times a Reader had to make its consumer anew, by reason (reconnected, no_heartbeat, gap, 409_consumer_deleted …).",
    ["stream", "reason"],
)
APPEND_QUEUE_BYTES: Final = Gauge(
    "trunkline_append_queue_bytes", "Bytes of events that wait for the log, all sessions of the process."
)
WRITERS_STOPPED: Final = Counter(
    "trunkline_writers_stopped_total",
    "Session writers that stopped for good, by error code (fenced, log_regressed …).",
    ["code"],
)
DELTAS: Final = Counter(
    "trunkline_deltas_total", "Streaming pieces sent, by whether they held the whole block.", ["whole"]
)
BLOB_BYTES: Final = Counter(
    "trunkline_blob_bytes_total", "Bytes that went to the blob store because a message was too large."
)
LEASES_LOST: Final = Counter("trunkline_leases_lost_total", "Leases that another holder took or that ran out.")

GATEWAY_CLIENTS: Final = Gauge("trunkline_gateway_clients", "Open connections, by kind (ws, sse).", ["kind"])
GATEWAY_QUEUED_FRAMES: Final = Gauge("trunkline_gateway_queued_frames", "Frames that wait for clients to take them.")
GATEWAY_QUEUED_BYTES: Final = Gauge("trunkline_gateway_queued_bytes", "Bytes of frames that wait for clients.")
GATEWAY_SUBSCRIPTIONS: Final = Counter(
    "trunkline_gateway_subscriptions_total",
    "Subscriptions opened, by where they begin (cursor, gap, start, snapshot, now).",
    ["how"],
)
GATEWAY_GAPS: Final = Counter(
    "trunkline_gateway_gaps_total", "Gaps that clients were told of, by reason (log_diverged, too_far …).", ["reason"]
)
GATEWAY_TOKEN_EXPIRY: Final = Gauge(
    "trunkline_gateway_token_expiry_timestamp_seconds",
    "When the next token expires, in seconds since 1970, by how it came to be (created); +Inf where none does.",
    ["via"],  # without a label every process would say that it was in 1970
)
GATEWAY_TERMINAL_BYTES: Final = Counter(
    "trunkline_gateway_terminal_bytes_total",
    "Bytes of terminals, by direction (out: to viewers, in: keys).",
    ["direction"],
)
GATEWAY_UNREADABLE: Final = Counter(
    "trunkline_gateway_unreadable_total", "Stored messages that are no JSON, and are not sent to clients."
)
GATEWAY_FRAMES: Final = Counter("trunkline_gateway_frames_total", "Frames written to clients.")
GATEWAY_REQUESTS: Final = Counter(
    "trunkline_gateway_requests_total", "Requests, by method and outcome (ok or the error's code).", ["method", "code"]
)
GATEWAY_REQUEST_SECONDS: Final = Histogram(
    "trunkline_gateway_request_seconds",
    "Seconds from a request to its answer.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
GATEWAY_LAGS: Final = Counter(
    "trunkline_gateway_lags_total", "Times a subscription fell back to catching up because its client was slow."
)
GATEWAY_THINNED: Final = Counter(
    "trunkline_gateway_thinned_total",
    "Deltas that a slow client was not given one by one: they went merged, or not at all.",
)
GATEWAY_DROPPED: Final = Counter(
    "trunkline_gateway_dropped_total",
    "Connections that the gateway ended, by reason (not_reading, silent, no_hello, revoked).",
    ["reason"],
)
GATEWAY_REFUSED: Final = Counter(
    "trunkline_gateway_refused_total", "Connections and requests refused, by error code.", ["code"]
)
GATEWAY_AUDIT_COUNTED: Final = Counter(
    "trunkline_gateway_audit_counted_total", "Audit records that are not stored one by one, but as a number of them."
)
RELAY_HOSTS: Final = Gauge("trunkline_relay_hosts", "Hosts that are connected to a relay.")
RELAY_VISITS: Final = Gauge(
    "trunkline_relay_visits",
    "Connections of devices to hosts at a relay, by where the host is (here, or at another replica: elsewhere).",
    ["host"],
)
RELAY_FRAMES: Final = Counter(
    "trunkline_relay_frames_total",
    "Envelopes that came to a relay, by direction (up: from devices, down).",
    ["direction"],
)
RELAY_BYTES: Final = Counter("trunkline_relay_bytes_total", "Bytes of those envelopes, likewise.", ["direction"])
RELAY_REFUSED: Final = Counter(
    "trunkline_relay_refused_total", "Connections that a relay refused or ended for a fault, by error code.", ["code"]
)
RELAY_SLOW: Final = Counter(
    "trunkline_relay_slow_total",
    "Connections cut because their end took too little, by end (host, device, replica).",
    ["end"],
)
RELAY_HOST_CONNECTED: Final = Gauge(
    "trunkline_relay_host_connected",
    "Whether a host is connected to its relay (1) or not (0), by the way there (embedded, direct, cloudflared …).",
    ["kind"],  # without a label every process would say that it is not
)
RELAY_HOST_RECONNECTS: Final = Counter(
    "trunkline_relay_host_reconnects_total", "Times that a host had to connect to its relay again."
)
RELAY_HOST_VISITS: Final = Gauge("trunkline_relay_host_visits", "Connections of devices that are open at a host.")
RELAY_HOST_VISITS_BEGUN: Final = Counter(
    "trunkline_relay_host_visits_begun_total", "Connections of devices that a relay brought to a host."
)
RELAY_HOST_REFUSED: Final = Counter(
    "trunkline_relay_host_refused_total",
    "Connections of devices that a host refused or ended for a fault, by error code.",
    ["code"],
)
RELAY_HOST_HANDSHAKES_FAILED: Final = Counter(
    "trunkline_relay_host_handshakes_failed_total", "Handshakes at a host that came to no end, or to a bad one."
)
RELAY_HOST_BYTES: Final = Counter(
    "trunkline_relay_host_bytes_total",
    "Sealed bytes of devices' connections at a host, by direction (up: from devices, down).",
    ["direction"],
)
RELAY_HOST_PAIRINGS: Final = Counter(
    "trunkline_relay_host_pairings_total",
    "Pairing links of a host, by outcome (paired, unused, or an error code).",
    ["outcome"],
)
DEAD_LETTERS: Final = Counter("trunkline_dead_letters_total", "Messages that a service could not apply.", ["service"])
PROJECTION_APPLIED: Final = Counter(
    "trunkline_projection_messages_total", "Messages that a projection has read.", ["projection"]
)
PROJECTION_WRITES: Final = Counter(
    "trunkline_projection_writes_total", "Documents that a projection has stored.", ["projection"]
)
PROJECTION_LOST: Final = Counter(
    "trunkline_projection_lost_writes_total",
    "Writes of a projection that came after another replica's, or after its bucket went back.",
    ["projection"],
)
PROJECTION_POSITION: Final = Gauge(
    "trunkline_projection_position", "Sequence of EVENTS up to which all documents are stored.", ["projection"]
)
PROJECTION_FROZEN: Final = Gauge(
    "trunkline_projection_frozen", "Keys that stand still because a message could not be folded.", ["projection"]
)
PROJECTION_READY: Final = Gauge(
    "trunkline_projection_ready", "Whether the projection has caught up with the log (1) or not (0).", ["projection"]
)
AGENTS: Final = Gauge("trunkline_agents", "Agents that run under this worker.", ["adapter"])
AGENT_STARTS: Final = Counter(
    "trunkline_agent_starts_total", "Starts of agents, by outcome (ok or an error code).", ["adapter", "outcome"]
)
AGENT_ENDS: Final = Counter(
    "trunkline_agent_ends_total",
    "Ends of agents, by reason (closed, killed, idle, stopping, ended, failed …).",
    ["adapter", "reason"],
)
AGENT_STALLS: Final = Counter(
    "trunkline_agent_stalls_total", "Times a turn was silent for so long that it counts as stalled.", ["adapter"]
)
SESSIONS: Final = Gauge("trunkline_sessions", "Sessions that this worker owns, by status.", ["status"])
TERMINALS: Final = Gauge("trunkline_terminals", "Terminals of agents that run under this worker.")
TURN_SECONDS: Final = Histogram(
    "trunkline_turn_seconds",
    "Seconds from a turn's begin to its end.",
    ["adapter"],
    buckets=(0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
)
FIRST_TOKEN_SECONDS: Final = Histogram(
    "trunkline_first_token_seconds",
    "Seconds from handing over a prompt to the first that the agent says or does.",
    ["adapter"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120),
)
TOOL_SECONDS: Final = Histogram(
    "trunkline_tool_seconds",
    "Seconds that tool calls took, asking for permission included.",
    ["adapter", "tool"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800),
)
TOOLS_ENDED: Final = Counter("trunkline_tools_total", "Tool calls that ended, by status.", ["adapter", "status"])
TOKENS: Final = Counter(
    "trunkline_tokens_total",
    "Tokens used, by kind (input, output, cache_write, cache_read).",
    ["agent", "model", "kind"],
)
COST: Final = Counter("trunkline_cost_usd_total", "Cost in USD, as agents name it.", ["agent", "model"])
WORKSPACE_COST: Final = Counter(
    "trunkline_workspace_cost_usd_total", "Cost in USD by the name of the session's directory.", ["workspace"]
)
TURNS: Final = Counter("trunkline_turns_total", "Turns that ended, by outcome.", ["adapter", "outcome"])
COMMANDS: Final = Counter("trunkline_commands_total", "Outcomes of commands, by verb.", ["verb", "outcome"])
NATIVE_UNKNOWN: Final = Counter(
    "trunkline_native_unknown_total",
    "Native messages without a translation (protocol drift), by the agent's version and its name for them.",
    ["adapter", "version", "kind"],
)
HOOKS: Final = Counter(
    "trunkline_hooks_total",
    "Calls of agents' hooks, by outcome (taken, again, unauthorized, malformed, too_large, too_many, no_room).",
    ["outcome"],
)
OBSERVED: Final = Counter("trunkline_observed_total", "What was seen of agents beside their own streams.", ["type"])
OBSERVED_DROPPED: Final = Counter(
    "trunkline_observed_dropped_total", "Observations that could not be stored, by error code.", ["code"]
)
OWNED_SESSIONS: Final = Gauge("trunkline_owned_sessions", "Sessions that this worker owns.")
SPAWNS: Final = Counter(
    "trunkline_spawns_total", "Requests for sessions that this worker took, by outcome.", ["adapter", "outcome"]
)
PERMISSION_DECISIONS: Final = Counter(
    "trunkline_permission_decisions_total", "Asks decided, by whom (policy, person) and how.", ["by", "behaviour"]
)
PERMISSION_REJECTED: Final = Counter(
    "trunkline_permission_rejected_answers_total", "Answers refused, by error code.", ["code"]
)
PERMISSION_LOST_APPENDS: Final = Counter(
    "trunkline_permission_lost_appends_total", "Decisions that another replica was quicker to append."
)
PERMISSION_OPEN_ASKS: Final = Gauge("trunkline_permission_open_asks", "Asks that wait for a decision.")
PERMISSION_OLDEST_ASK: Final = Gauge(
    "trunkline_permission_oldest_ask_seconds", "Seconds that the oldest open ask has waited, 0 where none is open."
)
PERMISSION_DECISION_SECONDS: Final = Histogram(
    "trunkline_permission_decision_seconds",
    "Seconds from an ask to its decision, by whom (policy, person).",
    ["by"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400),
)
PERMISSION_EXPIRED: Final = Counter("trunkline_permission_expired_total", "Asks that expired, as a policy says.")
TEAM_CAVEATS: Final = Counter(
    "trunkline_team_caveats_total",
    "What was odd in what agents tell of their teams, by kind (drift, late_call …).",
    ["code"],
)
TEAM_LOST_APPENDS: Final = Counter(
    "trunkline_team_lost_appends_total", "Team events that another replica was quicker to append."
)
TEAMS: Final = Gauge("trunkline_teams", "Teams that have not ended.")
TEAM_MEMBERS: Final = Gauge("trunkline_team_members", "Members of teams that have not ended.")
TEAM_TASKS: Final = Gauge("trunkline_team_tasks", "Tasks on the boards of such teams, by status.", ["status"])
LOG_FILL: Final = Gauge(
    "trunkline_log_fill_ratio", "Share of the log's max_bytes in use, 0 to 1, as a process that writes sees it."
)

# Of the NATS servers, as they tell `trunkline_monitor`.
NATS_UP: Final = Gauge("trunkline_nats_up", "Whether the server answers and calls itself healthy (1).", ["server"])
NATS_CONNECTIONS: Final = Gauge("trunkline_nats_connections", "Connections of clients.", ["server"])
NATS_MEMORY: Final = Gauge("trunkline_nats_memory_bytes", "Memory of the server.", ["server"])
NATS_CPU: Final = Gauge("trunkline_nats_cpu_cores", "Cores that the server keeps busy.", ["server"])
NATS_SLOW_CONSUMERS: Final = Counter(
    "trunkline_nats_slow_consumers_total", "Connections that the server ended because they read too slowly.", ["server"]
)
NATS_MESSAGES: Final = Counter(
    "trunkline_nats_messages_total", "Messages that came in or went out.", ["server", "direction"]
)
NATS_BYTES: Final = Counter("trunkline_nats_bytes_total", "Bytes that came in or went out.", ["server", "direction"])
NATS_API: Final = Counter(
    "trunkline_nats_api_requests_total",
    "Requests to the JetStream API, by result (all, refused).",
    ["server", "result"],
)
NATS_STORAGE: Final = Gauge("trunkline_nats_storage_bytes", "Bytes of all streams on disk.", ["server"])
NATS_STORAGE_LIMIT: Final = Gauge("trunkline_nats_storage_limit_bytes", "Bytes that streams may have.", ["server"])
NATS_HAS_LEADER: Final = Gauge(
    "trunkline_nats_has_leader",
    "Whether a stream (or `meta`, the cluster itself) has a leader (1).",
    ["server", "stream"],
)
NATS_STREAM_MESSAGES: Final = Gauge("trunkline_nats_stream_messages", "Messages of a stream.", ["server", "stream"])
NATS_STREAM_BYTES: Final = Gauge("trunkline_nats_stream_bytes", "Bytes of a stream.", ["server", "stream"])
NATS_STREAM_LIMIT: Final = Gauge(
    "trunkline_nats_stream_limit_bytes", "Bytes that a stream may have; absent where it may grow.", ["server", "stream"]
)
NATS_STREAM_LAST: Final = Gauge(
    "trunkline_nats_stream_last_sequence", "A stream's last sequence.", ["server", "stream"]
)
NATS_STREAM_BEHIND: Final = Gauge(
    "trunkline_nats_stream_replicas_behind", "Copies of a stream that are offline or behind.", ["server", "stream"]
)
NATS_CONSUMERS: Final = Gauge("trunkline_nats_stream_consumers", "Consumers of a stream.", ["server", "stream"])
NATS_PENDING: Final = Gauge(
    "trunkline_nats_stream_pending",
    "Messages that the slowest consumer of a stream has yet to get.",
    ["server", "stream"],
)
NATS_UNACKNOWLEDGED: Final = Gauge(
    "trunkline_nats_stream_unacknowledged", "Messages handed out and not acknowledged.", ["server", "stream"]
)
CERTIFICATE_EXPIRY: Final = Gauge(
    "trunkline_certificate_expiry_timestamp_seconds",
    "When the certificate of a TLS server expires, in seconds since 1970.",
    ["endpoint"],
)


class Metric(NamedTuple):
    """One entry of the registry. `samples` are the series' names, `kind` Prometheus' word for it."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    samples: tuple[str, ...]


_SAMPLES: Final = {Histogram: ("_bucket", "_sum", "_count"), Counter: ("_total",), Gauge: ("",)}


def catalogue() -> dict[str, Metric]:
    """All metrics by name, as dashboards and alerts may use them."""
    found: dict[str, Metric] = {}
    for value in globals().values():
        if isinstance(value, Histogram | Counter | Gauge):
            described = next(iter(value.describe()))
            samples = tuple(described.name + suffix for suffix in _SAMPLES[type(value)])
            name = samples[0] if described.type == "counter" else described.name
            labels: tuple[str, ...] = value._labelnames  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            found[name] = Metric(name, described.type, described.documentation, tuple(labels), samples)
    return found
