"""The registry of Prometheus metrics: every name that Trunkline exports is made here, and dashboards use no other."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

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
TEAM_CAVEATS: Final = Counter(
    "trunkline_team_caveats_total",
    "What was odd in what agents tell of their teams, by kind (drift, late_call …).",
    ["code"],
)
TEAM_LOST_APPENDS: Final = Counter(
    "trunkline_team_lost_appends_total", "Team events that another replica was quicker to append."
)
TEAMS: Final = Gauge("trunkline_teams", "Teams that have not ended.")
LOG_FILL: Final = Gauge(
    "trunkline_log_fill_ratio", "Share of the log's max_bytes in use, 0 to 1, as a process that writes sees it."
)
