"""The dashboards. Every name in them is one of `trunkline_bus.metrics`, or of a process (`process_…`), or `up`."""

from typing import Final

from deploy.grafana.spec import Board, Panel, Query, panel, quantiles, rate, stat


def _whole(aggregate: str, expr: str, label: str) -> str:
    """All parts of a projection together: what is cut in parts is called `sessions.<part>`."""
    return f'{aggregate} by (whole) (label_replace({expr}, "whole", "$1", "{label}", "([a-z-]+).*"))'


_OVERVIEW: Final = Board(
    "trunkline-overview",
    "Trunkline / Overview",
    (
        (
            "Now",
            (
                stat("Services ready", "sum(trunkline_service_ready)"),
                stat("Sessions with a turn", 'sum(trunkline_sessions{status=~"running|waiting|stalled"})'),
                stat("Open asks", "max(trunkline_permission_open_asks)"),
                stat("Clients", "sum(trunkline_gateway_clients)"),
                stat("Cost in the last hour", "sum(increase(trunkline_cost_usd_total[1h]))", "currencyUSD"),
                stat("Log in use", "max(trunkline_log_fill_ratio)", "percentunit"),
            ),
        ),
        (
            "Rate, errors, duration",
            (
                rate("Requests at the gateway", "trunkline_gateway_requests_total", "code", "reqps"),
                rate("Turns", "trunkline_turns_total", "outcome"),
                rate("Commands", "trunkline_commands_total", "outcome"),
                rate("Events appended", "trunkline_appends_total", "job"),
                rate("Warnings and errors in the logs", "trunkline_log_records_total", "job, level"),
                quantiles("From the log to its consumers", "trunkline_reader_delay_seconds", "consumer"),
            ),
        ),
        (
            "Saturation",
            (
                panel(
                    "Event loops behind, p99",
                    "histogram_quantile(0.99, sum by (le, job) (rate(trunkline_loop_lag_seconds_bucket[$__rate_interval])))",
                    "{{job}}",
                    "s",
                    "Above 0.1 s a process is too busy for its work.",
                ),
                panel("Cores in use", "sum by (job) (rate(process_cpu_seconds_total[$__rate_interval]))", "{{job}}"),
                panel("Memory", "sum by (job) (process_resident_memory_bytes)", "{{job}}", "bytes"),
                panel("Open files", "max by (job) (process_open_fds)", "{{job}}"),
                panel(
                    "Connected to NATS", "min by (job, connection) (trunkline_bus_connected)", "{{job}} {{connection}}"
                ),
                panel("Scraped", "min by (job) (up)", "{{job}}"),
            ),
        ),
    ),
)

_AGENTS: Final = Board(
    "trunkline-agents",
    "Trunkline / Agents and cost",
    (
        (
            "Agents",
            (
                panel("Running", "sum by (adapter) (trunkline_agents)", "{{adapter}}"),
                panel("Sessions by status", "sum by (status) (trunkline_sessions)", "{{status}}"),
                rate("Starts", "trunkline_agent_starts_total", "adapter, outcome"),
                rate("Ends", "trunkline_agent_ends_total", "adapter, reason", says="`failed` is an agent that died."),
                rate("Requests for sessions", "trunkline_spawns_total", "adapter, outcome"),
                panel("Sessions owned", "sum by (instance) (trunkline_owned_sessions)", "{{instance}}"),
            ),
        ),
        (
            "Turns and tools",
            (
                rate("Turns by outcome", "trunkline_turns_total", "adapter, outcome"),
                quantiles("Time to the first word", "trunkline_first_token_seconds", "adapter"),
                quantiles("Length of turns", "trunkline_turn_seconds", "adapter"),
                rate("Tool calls", "trunkline_tools_total", "adapter, status"),
                panel(
                    "Length of tool calls, p95",
                    "histogram_quantile(0.95, sum by (le, tool) (rate(trunkline_tool_seconds_bucket[$__rate_interval])))",
                    "{{tool}}",
                    "s",
                ),
                rate("Commands", "trunkline_commands_total", "verb, outcome"),
            ),
        ),
        (
            "Tokens and money",
            (
                rate("Tokens", "trunkline_tokens_total", "agent, kind"),
                rate("Tokens by model", "trunkline_tokens_total", "model"),
                panel(
                    "Cost an hour, by agent",
                    "sum by (agent) (increase(trunkline_cost_usd_total[1h]))",
                    "{{agent}}",
                    "currencyUSD",
                ),
                panel(
                    "Cost an hour, by model",
                    "sum by (model) (increase(trunkline_cost_usd_total[1h]))",
                    "{{model}}",
                    "currencyUSD",
                ),
                panel(
                    "Cost an hour, by directory",
                    "topk(10, sum by (workspace) (increase(trunkline_workspace_cost_usd_total[1h])))",
                    "{{workspace}}",
                    "currencyUSD",
                ),
            ),
        ),
        (
            "Trouble",
            (
                rate(
                    "Messages without a translation",
                    "trunkline_native_unknown_total",
                    "adapter, version, kind",
                    says="After an upgrade of an agent: its protocol has something new.",
                ),
                rate("Turns that stalled", "trunkline_agent_stalls_total", "adapter"),
                rate("Handed out again", "trunkline_redeliveries_total", "stream"),
                panel("Terminals", "sum by (job) (trunkline_terminals)", "{{job}}"),
            ),
        ),
    ),
)

_ASKS: Final = Board(
    "trunkline-asks",
    "Trunkline / Asks and approvals",
    (
        (
            "Waiting",
            (
                stat("Open asks", "max(trunkline_permission_open_asks)"),
                stat("The oldest has waited", "max(trunkline_permission_oldest_ask_seconds)", "dtdurations"),
                panel("Open asks over time", "max(trunkline_permission_open_asks)", "open"),
                panel("The oldest over time", "max(trunkline_permission_oldest_ask_seconds)", "waits", "s"),
            ),
        ),
        (
            "Decisions",
            (
                rate("Decided", "trunkline_permission_decisions_total", "by, behaviour"),
                quantiles("Time to a decision", "trunkline_permission_decision_seconds", "by"),
                rate("Answers refused", "trunkline_permission_rejected_answers_total", "code"),
                panel("Expired", "sum(rate(trunkline_permission_expired_total[$__rate_interval]))", "expired", "ops"),
                panel(
                    "Lost to another replica",
                    "sum(rate(trunkline_permission_lost_appends_total[$__rate_interval]))",
                    "lost",
                    "ops",
                ),
            ),
        ),
    ),
)

_BUS: Final = Board(
    "trunkline-bus",
    "Trunkline / Bus and projections",
    (
        (
            "Writing",
            (
                rate("Events by type", "trunkline_appends_total", "type"),
                quantiles("Appends", "trunkline_append_seconds", says="From the first send to the acknowledgement."),
                rate(
                    "Looked up at the leader",
                    "trunkline_append_unknown_outcomes_total",
                    "reason",
                    says="Conflicts and retries.",
                ),
                panel("Waiting for the log", "sum by (job) (trunkline_append_queue_bytes)", "{{job}}", "bytes"),
                rate("Writers that stopped", "trunkline_writers_stopped_total", "code"),
                rate("Streaming pieces", "trunkline_deltas_total", "whole"),
                panel(
                    "Large values",
                    "sum(rate(trunkline_blob_bytes_total[$__rate_interval]))",
                    "to the blob store",
                    "Bps",
                ),
                panel(
                    "Leases lost",
                    "sum by (job) (rate(trunkline_leases_lost_total[$__rate_interval]))",
                    "{{job}}",
                    "ops",
                ),
            ),
        ),
        (
            "Reading",
            (
                panel("Behind, in events", _whole("max", "trunkline_reader_lag_events", "consumer"), "{{whole}}"),
                panel(
                    "Behind, in seconds", _whole("max", "trunkline_reader_lag_seconds", "consumer"), "{{whole}}", "s"
                ),
                quantiles("From the log to the consumer", "trunkline_reader_delay_seconds", "consumer"),
                rate("Consumers made anew", "trunkline_reader_recreated_total", "stream, reason"),
                panel(
                    "Messages projected",
                    _whole("sum", "rate(trunkline_projection_messages_total[$__rate_interval])", "projection"),
                    "{{whole}}",
                    "ops",
                ),
                panel(
                    "Documents stored",
                    _whole("sum", "rate(trunkline_projection_writes_total[$__rate_interval])", "projection"),
                    "{{whole}}",
                    "ops",
                ),
                panel("Stored up to", _whole("min", "trunkline_projection_position", "projection"), "{{whole}}"),
                panel("Caught up", _whole("min", "trunkline_projection_ready", "projection"), "{{whole}}"),
                panel(
                    "Sessions that stand still", _whole("sum", "trunkline_projection_frozen", "projection"), "{{whole}}"
                ),
                panel(
                    "Writes lost to another replica",
                    _whole("sum", "rate(trunkline_projection_lost_writes_total[$__rate_interval])", "projection"),
                    "{{whole}}",
                    "ops",
                ),
                rate("Dead letters", "trunkline_dead_letters_total", "service"),
            ),
        ),
        (
            "Connections",
            (
                panel("Connected", "min by (job, connection) (trunkline_bus_connected)", "{{job}} {{connection}}"),
                rate("Lost", "trunkline_bus_disconnects_total", "job, connection"),
                rate("Errors outside of calls", "trunkline_bus_errors_total", "job, kind"),
            ),
        ),
    ),
)

_GATEWAY: Final = Board(
    "trunkline-gateway",
    "Trunkline / Gateway",
    (
        (
            "Requests",
            (
                rate("By method", "trunkline_gateway_requests_total", "method", "reqps"),
                rate("By outcome", "trunkline_gateway_requests_total", "code", "reqps"),
                quantiles("Duration", "trunkline_gateway_request_seconds"),
                panel(
                    "Slowest methods, p95",
                    "topk(10, histogram_quantile(0.95, sum by (le, method) "
                    "(rate(trunkline_gateway_request_seconds_bucket[$__rate_interval]))))",
                    "{{method}}",
                    "s",
                ),
                rate("Refused", "trunkline_gateway_refused_total", "code"),
                panel(
                    "Audit records only counted",
                    "sum(rate(trunkline_gateway_audit_counted_total[$__rate_interval]))",
                    "counted",
                    "ops",
                ),
            ),
        ),
        (
            "Clients",
            (
                panel("Connections", "sum by (kind) (trunkline_gateway_clients)", "{{kind}}"),
                rate("Subscriptions", "trunkline_gateway_subscriptions_total", "how", says="`cursor` is a resume."),
                rate("Gaps", "trunkline_gateway_gaps_total", "reason"),
                panel("Frames", "sum(rate(trunkline_gateway_frames_total[$__rate_interval]))", "written", "ops"),
                Panel(
                    "Waiting for clients",
                    (
                        Query("sum(trunkline_gateway_queued_frames)", "frames"),
                        Query("sum(trunkline_gateway_queued_bytes)", "bytes"),
                    ),
                ),
                panel(
                    "Fell back to catching up",
                    "sum(rate(trunkline_gateway_lags_total[$__rate_interval]))",
                    "lags",
                    "ops",
                ),
                panel(
                    "Deltas left out", "sum(rate(trunkline_gateway_thinned_total[$__rate_interval]))", "thinned", "ops"
                ),
                rate("Connections ended by the gateway", "trunkline_gateway_dropped_total", "reason"),
                panel(
                    "Unreadable", "sum(rate(trunkline_gateway_unreadable_total[$__rate_interval]))", "messages", "ops"
                ),
            ),
        ),
        (
            "Terminals and tokens",
            (
                rate("Bytes of terminals", "trunkline_gateway_terminal_bytes_total", "direction", "Bps"),
                stat(
                    "Next token expires in",
                    "min(trunkline_gateway_token_expiry_timestamp_seconds) - time()",
                    "dtdurations",
                    "Of the tokens made by hand.",
                ),
            ),
        ),
    ),
)

_TEAMS: Final = Board(
    "trunkline-teams",
    "Trunkline / Teams",
    (
        (
            "Boards",
            (
                panel("Teams", "max(trunkline_teams)", "teams"),
                panel("Members", "max(trunkline_team_members)", "members"),
                panel("Tasks", "max by (status) (trunkline_team_tasks)", "{{status}}"),
            ),
        ),
        (
            "Events",
            (
                rate("Written", 'trunkline_appends_total{type=~"team[.].*"}', "type"),
                rate("Odd in what agents tell", "trunkline_team_caveats_total", "code"),
                panel(
                    "Lost to another replica",
                    "sum(rate(trunkline_team_lost_appends_total[$__rate_interval]))",
                    "lost",
                    "ops",
                ),
            ),
        ),
        (
            "What is seen beside the agents' own streams",
            (
                rate("Observations", "trunkline_observed_total", "type"),
                rate("Not stored", "trunkline_observed_dropped_total", "code"),
                rate("Calls of hooks", "trunkline_hooks_total", "outcome"),
            ),
        ),
    ),
)

_NATS: Final = Board(
    "trunkline-nats",
    "Trunkline / NATS servers",
    (
        (
            "Servers",
            (
                panel("Healthy", "min by (server) (trunkline_nats_up)", "{{server}}"),
                panel("Connections", "sum by (server) (trunkline_nats_connections)", "{{server}}"),
                panel("Cores in use", "sum by (server) (trunkline_nats_cpu_cores)", "{{server}}"),
                panel("Memory", "sum by (server) (trunkline_nats_memory_bytes)", "{{server}}", "bytes"),
                rate("Messages", "trunkline_nats_messages_total", "server, direction"),
                rate("Bytes", "trunkline_nats_bytes_total", "server, direction", "Bps"),
                rate("Slow consumers", "trunkline_nats_slow_consumers_total", "server"),
                rate("JetStream API", "trunkline_nats_api_requests_total", "server, result"),
            ),
        ),
        (
            "Streams",
            (
                panel("Messages", "max by (stream) (trunkline_nats_stream_messages)", "{{stream}}"),
                panel("Bytes", "max by (stream) (trunkline_nats_stream_bytes)", "{{stream}}", "bytes"),
                panel(
                    "Share of the limit",
                    "max by (stream) (trunkline_nats_stream_bytes / trunkline_nats_stream_limit_bytes)",
                    "{{stream}}",
                    "percentunit",
                    "EVENTS refuses turns at 85 %; the others drop their oldest.",
                ),
                panel(
                    "Share of the store",
                    "max by (server) (trunkline_nats_storage_bytes / trunkline_nats_storage_limit_bytes)",
                    "{{server}}",
                    "percentunit",
                ),
                panel("Last sequence", "max by (stream) (trunkline_nats_stream_last_sequence)", "{{stream}}"),
                panel("Consumers", "max by (stream) (trunkline_nats_stream_consumers)", "{{stream}}"),
                panel("Not yet handed out", "max by (stream) (trunkline_nats_stream_pending)", "{{stream}}"),
                panel("Not acknowledged", "max by (stream) (trunkline_nats_stream_unacknowledged)", "{{stream}}"),
            ),
        ),
        (
            "Quorum and certificates",
            (
                panel("Has a leader", "max by (stream) (trunkline_nats_has_leader)", "{{stream}}"),
                panel("Copies behind", "max by (stream) (trunkline_nats_stream_replicas_behind)", "{{stream}}"),
                panel(
                    "Certificates expire in",
                    "min by (endpoint) (trunkline_certificate_expiry_timestamp_seconds) - time()",
                    "{{endpoint}}",
                    "dtdurations",
                ),
            ),
        ),
    ),
)

_RELAY: Final = Board(
    "trunkline-relay",
    "Trunkline / Relay",
    (
        (
            "Who is connected",
            (
                stat("Hosts", "sum(trunkline_relay_hosts)"),
                stat("Devices", 'sum(trunkline_relay_visits{host="here"})', says="Each is counted where its host is."),
                panel("Hosts by replica", "max by (instance) (trunkline_relay_hosts)", "{{instance}}"),
                panel(
                    "Connections of devices",
                    "sum by (instance, host) (trunkline_relay_visits)",
                    "{{instance}} host {{host}}",
                ),
            ),
        ),
        (
            "What goes by",
            (
                rate("Envelopes", "trunkline_relay_frames_total", "direction"),
                rate("Bytes", "trunkline_relay_bytes_total", "direction", "Bps"),
                rate("Refused", "trunkline_relay_refused_total", "code"),
                rate(
                    "Too slow", "trunkline_relay_slow_total", "end", says="Cut; they come again and resume by cursor."
                ),
            ),
        ),
        (
            "At the hosts",
            (
                panel(
                    "Connected to the relay",
                    "min by (instance, kind) (trunkline_relay_host_connected)",
                    "{{instance}} {{kind}}",
                ),
                rate("Connected again", "trunkline_relay_host_reconnects_total", "instance"),
                panel("Devices", "sum by (instance) (trunkline_relay_host_visits)", "{{instance}}"),
                rate("Devices that come", "trunkline_relay_host_visits_begun_total", "instance"),
                rate("Refused by hosts", "trunkline_relay_host_refused_total", "code"),
                rate("Handshakes that failed", "trunkline_relay_host_handshakes_failed_total", "instance"),
                rate("Sealed bytes", "trunkline_relay_host_bytes_total", "direction", "Bps"),
                rate("Pairings", "trunkline_relay_host_pairings_total", "outcome"),
            ),
        ),
    ),
)

BOARDS: Final = (_OVERVIEW, _AGENTS, _ASKS, _BUS, _GATEWAY, _TEAMS, _NATS, _RELAY)
