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
