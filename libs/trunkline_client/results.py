"""What the gateway's methods answer. Generated from its registry by `just schema`: a test compares them.

A later gateway may add fields, and members to any union.
"""

# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AdapterPage(TypedDict):
    adapters: list[NamedAdapter]
    has_more: bool
    total: int


class AdapterThere(TypedDict):
    capabilities: Capabilities | None
    error: ErrorInfo | None
    host: str
    hostname: str | None
    path: str | None
    protocol: str | None
    version: str | None
    worker: str


class AgentPage(TypedDict):
    agents: list[NamedAgent]
    has_more: bool
    host: str
    total: int


class AgentWay(TypedDict):
    adapter: str
    capabilities: Capabilities | None
    error: ErrorInfo | None
    login: str
    path: str | None
    profile: str | None
    protocol: str | None
    signed_in: bool
    version: str | None
    way: str


class Answered(TypedDict):
    answer: str
    decision: NotRequired[AskDecided]
    outcome: Literal["decided", "voted"]
    quorum: NotRequired[int]
    votes: NotRequired[int]


class AnsweredMany(TypedDict):
    asks: list[Considered]
    dry_run: bool
    id: str


class AskCounts(TypedDict):
    oldest: OldestAsk | None
    open: int
    sessions: int


class AskDecided(TypedDict):
    ask: str
    behaviour: Literal["allow", "answered", "deny"]
    by: str
    answer: NotRequired[str | None]
    rule: NotRequired[str | None]
    option: NotRequired[str | None]
    updated_input: NotRequired[Any]
    rule_updates: NotRequired[Any]
    answers: NotRequired[dict[str, Any] | None]
    message: NotRequired[str | None]
    interrupt: NotRequired[bool]
    signature: NotRequired[Signature | None]
    remembers: NotRequired[SessionRule | None]


class AskExpired(TypedDict):
    ask: str
    behaviour: NotRequired[Literal["allow", "deny"]]


class AskLink(TypedDict):
    code: str
    expires: float
    path: str


class AskOption(TypedDict):
    id: str
    name: str
    kind: NotRequired[Literal["allow_always", "allow_once", "other", "reject_always", "reject_once"]]


class AskPage(TypedDict):
    asks: list[PermissionAsk | QuestionAsk | PlanAsk]
    has_more: bool
    members: NotRequired[dict[str, str | None]]
    requests: NotRequired[list[TeamRequest]]
    total: int


class AskRouted(TypedDict):
    ask: str
    policy: str
    rule: NotRequired[str | None]
    expires_at: NotRequired[str | None]
    on_expiry: NotRequired[Literal["allow", "deny"]]
    quorum: NotRequired[int]
    role: NotRequired[str | None]
    signed: NotRequired[bool]


class AskStories(TypedDict):
    asks: list[Story]
    cursor: str | None
    has_more: bool
    total: int


class AskVoted(TypedDict):
    ask: str
    answer: str
    by: str
    behaviour: Literal["allow", "answered", "deny"]
    signature: NotRequired[Signature | None]


class Auth(TypedDict):
    authenticating: bool
    methods: list[str]
    error: str | None


class BlobPart(TypedDict):
    data: str
    next: str | None
    size: int


class BlobRef(TypedDict):
    sha256: str
    size: int
    media_type: NotRequired[str]
    preview: NotRequired[str]


BoardMessage = TypedDict("BoardMessage", {"event": str, "time": str, "from": str, "to": NotRequired[str | None], "summary": NotRequired[str | None], "content": NotRequired[str]})


class BoardTask(TypedDict):
    id: str
    created: str
    updated: str
    status: NotRequired[Literal["completed", "in_progress", "pending"]]
    subject: NotRequired[str | None]
    description: NotRequired[str | None]
    owner: NotRequired[str | None]
    active_form: NotRequired[str | None]
    blocks: NotRequired[list[str]]
    blocked_by: NotRequired[list[str]]
    by: NotRequired[str | None]


class Buried(TypedDict):
    pass


class Capabilities(TypedDict):
    streaming: NotRequired[bool]
    interrupt: NotRequired[bool]
    resume: NotRequired[bool]
    fork: NotRequired[bool]
    rewind: NotRequired[bool]
    model_switching: NotRequired[bool]
    mode_switching: NotRequired[bool]
    thinking: NotRequired[bool]
    slash_commands: NotRequired[bool]
    mcp: NotRequired[bool]
    structured_output: NotRequired[bool]
    image_input: NotRequired[bool]
    file_checkpointing: NotRequired[bool]
    cost_tracking: NotRequired[bool]
    teams: NotRequired[bool]
    permissions: NotRequired[bool]
    questions: NotRequired[bool]
    plans: NotRequired[bool]
    steering: NotRequired[bool]
    queueing: NotRequired[bool]
    compaction: NotRequired[bool]
    archive: NotRequired[bool]
    terminal: NotRequired[bool]
    native_protocol: NotRequired[bool]
    availability: NotRequired[Literal["both", "local", "remote"]]
    hold: NotRequired[list[Literal["auto", "child", "detached", "tmux"]]]
    options: NotRequired[list[str]]
    heuristic: NotRequired[list[str]]


class Card(TypedDict):
    task: BoardTask
    waits_for: list[str]


class Choice(TypedDict):
    id: str
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    hint: NotRequired[str | None]
    current: NotRequired[bool | None]


class CommandSent(TypedDict):
    command: str
    error: NotRequired[ErrorInfo]
    how: NotRequired[str | None]
    outcome: NotRequired[Literal["failed", "finished", "rejected"]]
    result: NotRequired[Any]
    sequence: int


class ConfigChoices(TypedDict):
    mode: list[Choice]
    model: list[Choice]
    thinking: list[Literal["high", "low", "max", "medium", "off"]]


class Configured(TypedDict):
    commands: dict[str, CommandSent]
    config: SessionConfig


class Considered(TypedDict):
    answer: NotRequired[str]
    ask: str
    decision: NotRequired[AskDecided]
    error: NotRequired[ErrorInfo]
    lane: str | None
    outcome: NotRequired[Literal["decided", "refused", "voted"]]
    quorum: NotRequired[int]
    requested: Any
    session: str
    votes: NotRequired[int]


class Context(TypedDict):
    used: int | None
    size: int | None


class Counted(TypedDict):
    item: str
    usage: NotRequired[Usage | None]
    settled: NotRequired[bool]


class Counts(TypedDict):
    prompts: int
    messages: int
    tools: int
    tools_failed: int
    asks: int
    errors: int
    files: int
    compactions: int
    native_known: int
    native_unknown: int
    unknown_types: int


class Created(TypedDict):
    notice: NotRequired[str]
    session: str
    state: SessionState | None


class Device(TypedDict):
    actor: str
    created: str
    fingerprint: NotRequired[str]
    id: str
    identity: NotRequired[str]
    name: str
    parent: NotRequired[str]
    push: NotRequired[bool]
    role: NotRequired[Literal["approver", "owner", "participant", "viewer"]]
    route: NotRequired[str]
    seen: NotRequired[str]


class DevicePage(TypedDict):
    devices: list[Device]
    has_more: bool
    total: int


class DeviceRevoked(TypedDict):
    devices: list[str]
    revoked: str
    tokens: list[str]


class Directories(TypedDict):
    directories: list[str]
    has_more: bool
    parent: str | None
    path: str


class Emitted(TypedDict):
    id: str
    sequence: int


class ErrorInfo(TypedDict):
    code: str
    message: str
    details: NotRequired[dict[str, Any]]


class EventAt(TypedDict):
    cursor: str
    event: Any


class EventRate(TypedDict):
    last: list[int]
    per_s: float
    position: int


class EventsSince(TypedDict):
    cursor: str
    events: list[EventAt]
    gap: NotRequired[Gap]


class Explanation(TypedDict):
    ruling: Ruling
    steps: list[Step]


class ExtensionMethod(TypedDict):
    limited: Literal["itself", "never", "session"]
    name: str
    role: Literal["approver", "owner", "participant", "viewer"]


class ExtensionPage(TypedDict):
    extensions: list[ShownExtension]
    has_more: bool
    total: int


class ExtensionPages(TypedDict):
    role: Literal["approver", "owner", "participant", "viewer"]
    title: str


class Forgotten(TypedDict):
    pass


class Forked(TypedDict):
    command: str
    error: NotRequired[ErrorInfo]
    how: NotRequired[str | None]
    outcome: NotRequired[Literal["failed", "finished", "rejected"]]
    result: NotRequired[Any]
    sequence: int
    session: str


class Gap(TypedDict):
    reason: Literal["erased", "log_diverged", "scope_changed", "too_far"]
    message: str
    details: dict[str, Any]


class Glance(TypedDict):
    asks: AskCounts
    dashboards: dict[str, str]
    events: EventRate
    host: str
    log: LogFill
    projections: list[ProjectionLag]
    sessions: SessionCounts
    spent: Spent
    unknown: Unknown
    version: str
    workers: list[WorkerShown]


class HistoryEntry(TypedDict):
    cursor: str
    event: Any
    result: NotRequired[EventAt]


class HistoryPage(TypedDict):
    after: str | None
    before: str | None
    events: list[HistoryEntry]
    has_more: bool
    total: int


class InstalledAdapter(TypedDict):
    name: str
    title: NotRequired[str | None]
    protocol: NotRequired[str | None]
    way: NotRequired[str]
    agents: NotRequired[list[InstalledAgent]]
    capabilities: NotRequired[Capabilities | None]
    version: NotRequired[str | None]
    path: NotRequired[str | None]
    error: NotRequired[ErrorInfo | None]


class InstalledAgent(TypedDict):
    name: str
    title: NotRequired[str | None]
    profile: NotRequired[str | None]
    path: NotRequired[str | None]
    version: NotRequired[str | None]
    error: NotRequired[ErrorInfo | None]
    login: NotRequired[str]
    signed_in: NotRequired[bool]


class Invited(TypedDict):
    invitation: str
    lasts: float


class LastError(TypedDict):
    code: str
    message: str
    time: str


class LastTurn(TypedDict):
    id: str | None
    number: int
    outcome: Literal["aborted", "error", "interrupted", "max_budget", "max_structured_output", "max_turns", "refused", "success"]
    completed: str
    trigger: Literal["background", "other", "prompt"]
    cause: str | None
    started: str | None
    duration_ms: int | None
    cost_usd: float | None
    error: ErrorInfo | None


class LeadUsage(TypedDict):
    cost_usd: float | None
    turns: int
    usage: Usage


class Location(TypedDict):
    path: str
    line: NotRequired[int | None]


class LogFill(TypedDict):
    fill: float
    last: int
    messages: int


class McpServer(TypedDict):
    name: str
    status: NotRequired[str | None]
    error: NotRequired[str | None]
    tools: NotRequired[int | None]


class MemberUsage(TypedDict):
    kind: Literal["subagent", "teammate"]
    model: str | None
    name: str
    session: str | None
    usage: Usage | None


class MessagePage(TypedDict):
    has_more: bool
    left_out: int
    messages: list[BoardMessage]


class Metering(TypedDict):
    done: NotRequired[Usage]
    live: NotRequired[Usage]
    counted: NotRequired[list[Counted]]
    cost_base: NotRequired[float]
    cost_total: NotRequired[float | None]
    cost_native: NotRequired[str | None]
    cost_extra: NotRequired[float | None]


class NamedAdapter(TypedDict):
    hosts: list[AdapterThere]
    name: str
    title: str | None


class NamedAgent(TypedDict):
    name: str
    title: str | None
    ways: list[AgentWay]


class NativeHistory(TypedDict):
    agent: str
    began: str | None
    ended: str | None
    messages: int
    model: str | None
    native: str
    title: str | None
    turns: int


class NativeIds(TypedDict):
    all: list[str]
    session: str | None


class NewToken(TypedDict):
    actor: str
    created: str
    device: NotRequired[str]
    expires: NotRequired[float]
    id: str
    label: NotRequired[str]
    parent: NotRequired[str]
    role: Literal["approver", "owner", "participant", "viewer"]
    scope: NotRequired[Scope]
    token: str
    via: NotRequired[str]


class Nonce(TypedDict):
    form: str
    nonce: str
    time: str
    window_s: float


class OfSession(TypedDict):
    session: str


class OldestAsk(TypedDict):
    session: str
    time: str


class OpenBlock(TypedDict):
    session: str
    item: str
    block: int
    kind: Literal["plan", "text", "thinking", "tool_input", "tool_output"]
    text: str
    at: NotRequired[int]
    turn: NotRequired[str | None]
    lane: NotRequired[str | None]


class OpenTerminal(TypedDict):
    adapter: str | None
    agent: str | None
    columns: int
    cwd: str | None
    host: str | None
    rows: int
    session: str
    title: str | None


class OpenTool(TypedDict):
    name: str
    started: str
    kind: NotRequired[Literal["delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"]]
    title: NotRequired[str | None]
    turn: NotRequired[str | None]
    lane: NotRequired[str | None]
    locations: NotRequired[list[Location]]


class OpenTurn(TypedDict):
    id: str | None
    number: int
    started: str
    cause: str | None
    trigger: Literal["background", "other", "prompt"]


class Opened(TypedDict):
    path: str
    session: str
    state: TerminalState | None


class OwnConfig(TypedDict):
    config: dict[str, Any]
    extension: str


class PagesTicket(TypedDict):
    expires: float
    path: str
    title: str


class Painted(TypedDict):
    columns: int
    paint: str
    rows: int


class Paired(TypedDict):
    actor: str
    created: str
    fingerprint: NotRequired[str]
    id: str
    identity: NotRequired[str]
    name: str
    parent: NotRequired[str]
    push: NotRequired[bool]
    role: NotRequired[Literal["approver", "owner", "participant", "viewer"]]
    route: NotRequired[str]
    seen: NotRequired[str]
    token: str


class PermissionAsk(TypedDict):
    kind: Literal["permission"]
    ask: str
    session: str
    incarnation: str
    requested: PermissionRequested
    sequence: int
    time: str
    status: Literal["decided", "expired", "lost", "open", "withdrawn"]
    event: NotRequired[str | None]
    lane: NotRequired[str | None]
    turn: NotRequired[str | None]
    source: NotRequired[Source | None]
    routed: NotRequired[AskRouted | None]
    votes: NotRequired[list[AskVoted]]
    rejected: NotRequired[list[RejectedAnswer]]
    ended_sequence: NotRequired[int | None]
    ended_time: NotRequired[str | None]
    decision: NotRequired[AskDecided | None]
    expired: NotRequired[AskExpired | None]
    withdrawn: NotRequired[str | None]
    delivered: NotRequired[bool]
    delivered_sequence: NotRequired[int | None]
    late: NotRequired[int]


class PermissionRequested(TypedDict):
    ask: str
    name: str
    incarnation: str
    kind: NotRequired[Literal["delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"]]
    title: NotRequired[str | None]
    input: NotRequired[Any]
    options: NotRequired[list[AskOption]]
    suggestions: NotRequired[Any]
    description: NotRequired[str | None]
    reason: NotRequired[str | None]
    tool: NotRequired[str | None]


class PlanAsk(TypedDict):
    kind: Literal["plan"]
    ask: str
    session: str
    incarnation: str
    requested: PlanProposed
    sequence: int
    time: str
    status: Literal["decided", "expired", "lost", "open", "withdrawn"]
    event: NotRequired[str | None]
    lane: NotRequired[str | None]
    turn: NotRequired[str | None]
    source: NotRequired[Source | None]
    routed: NotRequired[AskRouted | None]
    votes: NotRequired[list[AskVoted]]
    rejected: NotRequired[list[RejectedAnswer]]
    ended_sequence: NotRequired[int | None]
    ended_time: NotRequired[str | None]
    decision: NotRequired[AskDecided | None]
    expired: NotRequired[AskExpired | None]
    withdrawn: NotRequired[str | None]
    delivered: NotRequired[bool]
    delivered_sequence: NotRequired[int | None]
    late: NotRequired[int]


class PlanEntry(TypedDict):
    content: str
    status: NotRequired[Literal["completed", "in_progress", "pending"]]
    priority: NotRequired[Literal["high", "low", "medium"] | None]


class PlanProposed(TypedDict):
    ask: str
    incarnation: str
    plan: str | BlobRef
    file: NotRequired[str | None]
    options: NotRequired[list[AskOption]]
    tool: NotRequired[str | None]


class PolicyNow(TypedDict):
    default: str
    path: str | None
    recorded: str | None
    rules: list[Rule]
    text: str
    version: str


class PolicyTest(TypedDict):
    changed: int
    other: str | None
    results: list[Result]
    truncated: bool
    version: str


class PolicyVersion(TypedDict):
    error: str | None
    path: str | None
    recorded: str | None
    rules: int | None
    state_dir: str
    text: str
    user_home: str
    version: str


class PolicyVersions(TypedDict):
    has_more: bool
    next: int | None
    total: int
    versions: list[PolicyVersion]


class ProjectionLag(TypedDict):
    behind: int
    frozen: int
    name: str
    position: int
    version: int


class PushKey(TypedDict):
    key: str


class PushTarget(TypedDict):
    device: str
    endpoint: str
    keys: dict[str, str]


class PushTargets(TypedDict):
    targets: list[PushTarget]


class Question(TypedDict):
    id: str
    text: str
    header: NotRequired[str | None]
    options: NotRequired[list[QuestionOption]]
    multiple: NotRequired[bool]
    free_text: NotRequired[bool]


class QuestionAsk(TypedDict):
    kind: Literal["question"]
    ask: str
    session: str
    incarnation: str
    requested: QuestionAsked
    sequence: int
    time: str
    status: Literal["decided", "expired", "lost", "open", "withdrawn"]
    event: NotRequired[str | None]
    lane: NotRequired[str | None]
    turn: NotRequired[str | None]
    source: NotRequired[Source | None]
    routed: NotRequired[AskRouted | None]
    votes: NotRequired[list[AskVoted]]
    rejected: NotRequired[list[RejectedAnswer]]
    ended_sequence: NotRequired[int | None]
    ended_time: NotRequired[str | None]
    decision: NotRequired[AskDecided | None]
    expired: NotRequired[AskExpired | None]
    withdrawn: NotRequired[str | None]
    delivered: NotRequired[bool]
    delivered_sequence: NotRequired[int | None]
    late: NotRequired[int]


class QuestionAsked(TypedDict):
    ask: str
    incarnation: str
    questions: NotRequired[list[Question]]
    message: NotRequired[str | None]
    schema: NotRequired[Any]
    tool: NotRequired[str | None]


class QuestionOption(TypedDict):
    label: str
    description: NotRequired[str | None]


class RejectedAnswer(TypedDict):
    answer: str
    code: str
    message: str


class Result(TypedDict):
    ask: NotRequired[str | None]
    session: NotRequired[str | None]
    asked: NotRequired[str | None]
    requested: Any
    explanation: Explanation
    other: NotRequired[Explanation | None]
    changed: NotRequired[bool]
    session_rule: NotRequired[str | None]
    status: NotRequired[Literal["decided", "expired", "lost", "open", "withdrawn"] | None]
    was: NotRequired[dict[str, Any]]


class Retry(TypedDict):
    attempt: int | None
    max_attempts: int | None
    after_ms: int | None
    reason: str | None
    time: str | None


class Revoked(TypedDict):
    revoked: str


class Routed(TypedDict):
    time: str
    policy: str
    rule: NotRequired[str | None]
    expires_at: NotRequired[str | None]
    quorum: NotRequired[int]
    role: NotRequired[str | None]
    signed: NotRequired[bool]


class Rule(TypedDict):
    name: str
    action: Literal["allow", "ask", "deny"]
    adapter: NotRequired[list[str]]
    workspace: NotRequired[list[str]]
    cwd: NotRequired[list[str]]
    tool: NotRequired[list[str]]
    kind: NotRequired[list[Literal["delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"]]]
    command: NotRequired[list[str]]
    path: NotRequired[list[str]]
    mcp_server: NotRequired[list[str]]
    danger: NotRequired[list[Literal["destroys", "downloads", "installs", "network", "obscured", "privileged", "publishes", "secrets"]]]
    cost_at_least: NotRequired[float | None]
    cost_at_most: NotRequired[float | None]
    hours: NotRequired[list[list[Any]]]
    weekdays: NotRequired[list[int]]
    zone: NotRequired[str]
    asks: NotRequired[list[Literal["permission", "plan", "question"]]]
    message: NotRequired[str | None]
    expires_after: NotRequired[float | None]
    on_expiry: NotRequired[Literal["allow", "deny"]]
    quorum: NotRequired[int]
    role: NotRequired[Literal["approver", "owner", "participant", "viewer"] | None]
    signed: NotRequired[bool]
    origin: NotRequired[str]


class RuleRecord(TypedDict):
    rule: str
    ask: str
    tool: str
    by: str
    time: str
    command: NotRequired[list[str]]
    revoked_by: NotRequired[str | None]
    revoked_time: NotRequired[str | None]
    revoked_answer: NotRequired[str | None]


class RuleRevoked(TypedDict):
    answer: str
    rule: RuleRecord


class Ruling(TypedDict):
    action: Literal["allow", "ask", "deny"]
    policy_version: str
    rule: NotRequired[str | None]
    message: NotRequired[str | None]
    expires_after: NotRequired[float | None]
    on_expiry: NotRequired[Literal["allow", "deny"]]
    quorum: NotRequired[int]
    role: NotRequired[Literal["approver", "owner", "participant", "viewer"] | None]
    signed: NotRequired[bool]


class Scope(TypedDict):
    sessions: NotRequired[list[str]]
    workspaces: NotRequired[list[str]]


class SeenNow(TypedDict):
    seen: list[str]


class SessionClosed(TypedDict):
    reason: str
    exit_code: NotRequired[int | None]
    signal: NotRequired[int | None]
    last_error: NotRequired[str | BlobRef | None]
    cmd_seq: NotRequired[int]


class SessionConfig(TypedDict):
    choices: ConfigChoices
    mode: str | None
    model: str | None
    thinking: str | None
    title: str | None


class SessionCounts(TypedDict):
    by_status: dict[str, int]
    total: int


class SessionErased(TypedDict):
    by: str
    reason: NotRequired[str | None]


class SessionInfo(TypedDict):
    adapter: str | None
    agent: str | None
    agents: list[Choice]
    archived: bool
    capabilities: Capabilities | None
    closed: bool
    commands: list[Choice]
    config: SessionConfig
    config_options: Any
    context: Context
    cost_usd: float | None
    created: str | None
    cwd: str | None
    host: str | None
    interface: Literal["structured", "terminal"]
    mcp_servers: list[McpServer]
    models: list[Choice]
    modes: list[Choice]
    native: NativeIds
    parent: str | None
    session: str
    status: Literal["archived", "authenticating", "closed", "compacting", "degraded", "idle", "interrupting", "retrying", "running", "stalled", "starting", "stopped", "waiting"]
    status_since: str | None
    title: str | None
    tools: list[str]
    turns: int
    updated: str | None
    usage: Usage
    version: str | None
    watching: list[Watching]
    workspace: str | None


class SessionNow(TypedDict):
    asks: list[PermissionAsk | QuestionAsk | PlanAsk]
    blocks: list[OpenBlock]
    messages: list[EventAt]
    state: SessionState


class SessionOptions(TypedDict):
    model: NotRequired[str | None]
    mode: NotRequired[str | None]
    thinking: NotRequired[Literal["high", "low", "max", "medium", "off"] | None]
    environment: NotRequired[dict[str, str]]
    system_prompt: NotRequired[str | None]
    append_system_prompt: NotRequired[str | None]
    allowed_tools: NotRequired[list[str] | None]
    disallowed_tools: NotRequired[list[str] | None]
    mcp_servers: NotRequired[dict[str, Any]]
    agents: NotRequired[dict[str, Any]]
    budget_usd: NotRequired[float | None]
    max_turns: NotRequired[int | None]
    output_schema: NotRequired[Any]
    prompt: NotRequired[str | None]
    hold: NotRequired[Literal["auto", "child", "detached", "tmux"]]
    resume_native: NotRequired[str | None]
    keep_native: NotRequired[Literal["all", "lossy", "none"]]
    native: NotRequired[dict[str, Any]]


class SessionPage(TypedDict):
    has_more: bool
    sessions: list[SessionState]
    total: int


class SessionRule(TypedDict):
    rule: str
    tool: str
    command: NotRequired[list[str]]


class SessionRules(TypedDict):
    rules: list[RuleRecord]


class SessionState(TypedDict):
    session: str
    status: Literal["archived", "authenticating", "closed", "compacting", "degraded", "idle", "interrupting", "retrying", "running", "stalled", "starting", "stopped", "waiting"]
    status_since: str | None
    retry: Retry | None
    condition: Literal["authenticating", "compacting", "interrupting", "retrying", "stalled", "starting", "stopped"] | None
    condition_since: str | None
    condition_reason: str | None
    sequence: int
    seq: int
    epoch: int
    cmd_seq: int
    created: str | None
    updated: str | None
    worker: str | None
    incarnation: str | None
    adapter: str | None
    agent: str | None
    version: str | None
    cwd: str | None
    host: str | None
    workspace: str | None
    placement: Literal["any", "host"]
    parent: str | None
    forked_at: str | None
    spawn: str | None
    options: SessionOptions
    title: str | None
    native_session: str | None
    aliases: list[str]
    interface: Literal["structured", "terminal"]
    terminal: Terminal | None
    attach: str | None
    auth: Auth | None
    account: Any
    model: str | None
    mode: str | None
    thinking: str | None
    initialized: bool
    capabilities: Capabilities | None
    commands: list[Choice]
    models: list[Choice]
    modes: list[Choice]
    agents: list[Choice]
    tools: list[str]
    mcp_servers: list[McpServer]
    config_options: Any
    suggestion: str | None
    turn: OpenTurn | None
    last_turn: LastTurn | None
    turns: int
    pending: list[str]
    open_tools: dict[str, OpenTool]
    open_asks: list[str]
    ended_asks: list[str]
    tasks: list[TaskState]
    plan: list[PlanEntry]
    usage: Usage
    cost_usd: float | None
    usage_by_model: dict[str, Usage]
    context: Context
    rate_limits: Any
    metering: Metering
    counts: Counts
    rest: dict[str, int]
    last_text: str | None
    last_author: Literal["assistant", "user"] | None
    last_error: LastError | None
    closed: SessionClosed | None
    archived: bool
    erased: SessionErased | None


class ShellOpened(TypedDict):
    of: str
    path: str
    session: str
    state: TerminalState | None


class ShownExtension(TypedDict):
    description: str
    methods: list[ExtensionMethod]
    name: str
    pages: ExtensionPages | None
    refused: list[str]
    statistics: list[dict[str, Any]]
    version: str


class ShutdownAsked(TypedDict):
    command: str
    error: NotRequired[ErrorInfo]
    how: NotRequired[str | None]
    outcome: NotRequired[Literal["failed", "finished", "rejected"]]
    result: NotRequired[Any]
    sequence: int
    session: str
    team: str


class SignInLink(TypedDict):
    code: str
    expires: float
    path: str


class Signature(TypedDict):
    device: str
    time: str
    nonce: str
    mac: str


class Source(TypedDict):
    actor: str
    via: NotRequired[str | None]
    route: NotRequired[str | None]
    role: NotRequired[str | None]
    device: NotRequired[str | None]


class Spend(TypedDict):
    cost_usd: float
    input: int
    output: int
    sessions: int
    turns: int


class Spent(TypedDict):
    by_agent: list[SpentBy]
    by_workspace: list[SpentIn]
    total: Spend


class SpentBy(TypedDict):
    agent: str
    cost_usd: float
    input: int
    output: int
    sessions: int
    turns: int


class SpentIn(TypedDict):
    cost_usd: float
    cwd: str
    input: int
    output: int
    sessions: int
    turns: int
    workspace: str


class Step(TypedDict):
    rule: str
    action: Literal["allow", "ask", "deny"]
    matched: NotRequired[bool]
    key: NotRequired[str | None]
    found: NotRequired[str | None]


class Story(TypedDict):
    ask: str
    session: str
    kind: Literal["permission", "plan", "question"]
    status: Literal["decided", "expired", "lost", "open", "withdrawn"]
    sequence: int
    asked: str
    requested: Any
    lane: NotRequired[str | None]
    turn: NotRequired[str | None]
    routed: NotRequired[Routed | None]
    votes: NotRequired[list[Voice]]
    rejected: NotRequired[list[Voice]]
    ended: NotRequired[str | None]
    took_s: NotRequired[float | None]
    behaviour: NotRequired[str | None]
    by: NotRequired[str | None]
    via: NotRequired[str | None]
    role: NotRequired[str | None]
    rule: NotRequired[str | None]
    answer: NotRequired[str | None]
    option: NotRequired[str | None]
    message: NotRequired[str | None]
    device: NotRequired[str | None]
    signature: NotRequired[Signature | None]
    remembers: NotRequired[str | None]
    why: NotRequired[str | None]
    delivered: NotRequired[str | None]
    delivered_s: NotRequired[float | None]
    revoked: NotRequired[str | None]
    revoked_by: NotRequired[str | None]


class Taken(TypedDict):
    state: TerminalState | None
    viewer: str


class TaskState(TypedDict):
    task: str
    started: str
    updated: str
    kind: NotRequired[str | None]
    status: NotRequired[Literal["completed", "failed", "pending", "running", "stopped"] | None]
    description: NotRequired[str | None]
    summary: NotRequired[str | None]
    background: NotRequired[bool | None]
    usage: NotRequired[Any]
    tool: NotRequired[str | None]
    output_file: NotRequired[str | None]


class TeamBoard(TypedDict):
    columns: dict[str, list[Card]]
    created: str
    description: str | None
    ended: str | None
    id: str
    lead: str
    members: dict[str, Literal["active", "idle", "shutdown"]]
    open_asks: int
    open_requests: int
    sessions: list[str]
    tasks: dict[str, int]
    team: str
    updated: str
    usage: Usage


class TeamMember(TypedDict):
    name: str
    joined: str
    updated: str
    status: NotRequired[Literal["active", "idle", "shutdown"]]
    kind: NotRequired[Literal["subagent", "teammate"]]
    agent_id: NotRequired[str | None]
    type: NotRequired[str | None]
    model: NotRequired[str | None]
    colour: NotRequired[str | None]
    session: NotRequired[str | None]
    lane: NotRequired[str | None]
    pane: NotRequired[str | None]
    usage: NotRequired[Usage | None]


class TeamNow(TypedDict):
    answered: list[TeamRequest]
    asking: dict[str, str | None]
    asks: list[PermissionAsk | QuestionAsk | PlanAsk]
    created: str
    description: str | None
    ended: str | None
    id: str
    lead: str
    members: list[TeamMember]
    open_asks: int
    open_requests: int
    requests: list[TeamRequest]
    rest: dict[str, int]
    role: Literal["lead", "member"]
    sessions: list[str]
    tasks: list[BoardTask]
    team: str
    updated: str
    usage: Usage


class TeamPage(TypedDict):
    has_more: bool
    teams: list[TeamSummary]
    total: int


class TeamRequest(TypedDict):
    request: str
    kind: Literal["permission", "plan", "shutdown"]
    member: str
    asked: NotRequired[str | None]
    reason: NotRequired[str | None]
    plan: NotRequired[str | None]
    tool: NotRequired[str | None]
    input: NotRequired[Any]
    approve: NotRequired[bool | None]
    answered: NotRequired[str | None]
    feedback: NotRequired[str | None]


class TeamSummary(TypedDict):
    created: str
    description: str | None
    ended: str | None
    id: str
    lead: str
    members: dict[str, Literal["active", "idle", "shutdown"]]
    open_asks: int
    open_requests: int
    sessions: list[str]
    tasks: dict[str, int]
    team: str
    updated: str
    usage: Usage


class TeamUsage(TypedDict):
    id: str
    lead: LeadUsage | None
    members: list[MemberUsage]
    total: Usage


class Terminal(TypedDict):
    columns: int
    rows: int
    title: str | None


class TerminalPage(TypedDict):
    has_more: bool
    shells: bool
    terminals: list[OpenTerminal]
    total: int


class TerminalState(TypedDict):
    terminal: str
    running: NotRequired[bool]
    columns: NotRequired[int]
    rows: NotRequired[int]
    writable: NotRequired[bool]
    writer: NotRequired[Writer | None]


class Token(TypedDict):
    actor: str
    created: str
    device: NotRequired[str]
    expires: NotRequired[float]
    id: str
    label: NotRequired[str]
    parent: NotRequired[str]
    role: Literal["approver", "owner", "participant", "viewer"]
    scope: NotRequired[Scope]
    via: NotRequired[str]


class TokenPage(TypedDict):
    has_more: bool
    tokens: list[Token]
    total: int


class Typist(TypedDict):
    state: TerminalState | None


class Unknown(TypedDict):
    by_agent: list[UnknownBy]
    total: int


class UnknownBy(TypedDict):
    agent: str
    messages: int
    version: str


class Usage(TypedDict):
    input: NotRequired[int]
    output: NotRequired[int]
    cache_write: NotRequired[int]
    cache_read: NotRequired[int]
    reasoning: NotRequired[int | None]
    cost_usd: NotRequired[float | None]
    context_used: NotRequired[int | None]
    context_size: NotRequired[int | None]
    source: NotRequired[str]


class UsageSums(TypedDict):
    by: Literal["agent", "host", "model", "session", "workspace"]
    has_more: bool
    rows: list[UsedBy]
    total: Used


class Used(TypedDict):
    cache_read: int
    cache_write: int
    cost_usd: float
    input: int
    output: int
    sessions: int
    turns: int


class UsedBy(TypedDict):
    cache_read: int
    cache_write: int
    cost_usd: float
    input: int
    key: str
    output: int
    sessions: int
    turns: int


class Voice(TypedDict):
    time: str
    answer: str
    by: NotRequired[str | None]
    via: NotRequired[str | None]
    behaviour: NotRequired[str | None]
    code: NotRequired[str | None]
    message: NotRequired[str | None]
    signature: NotRequired[Signature | None]


class Watching(TypedDict):
    actor: str
    client: str
    device: str | None
    doing: Literal["typing", "watching"]
    program: str
    role: Literal["approver", "owner", "participant", "viewer"]
    since: str


class WhoWatches(TypedDict):
    sessions: dict[str, list[Watching]]


class Worker(TypedDict):
    worker: str
    host: str
    pid: int
    hostname: NotRequired[str | None]
    version: NotRequired[str | None]
    started: NotRequired[float]
    sessions: NotRequired[int]
    busy: NotRequired[int]
    stopping: NotRequired[bool]
    adapters: NotRequired[list[InstalledAdapter]]


class WorkerAgent(TypedDict):
    error: str | None
    name: str
    version: str | None


class WorkerPage(TypedDict):
    has_more: bool
    host: str
    total: int
    workers: list[Worker]


class WorkerShown(TypedDict):
    agents: list[WorkerAgent]
    busy: int
    host: str
    hostname: str | None
    sessions: int
    started: float
    version: str | None
    worker: str


class WorkspaceFound(TypedDict):
    cost_usd: float
    cwd: str | None
    histories: list[NativeHistory]
    host: str | None
    open_asks: int
    recent: list[SessionState]
    sessions: int
    statuses: dict[str, int]
    updated: str | None
    workspace: str | None


class WorkspaceNow(TypedDict):
    cost_usd: float
    cwd: str | None
    host: str | None
    open_asks: int
    recent: list[SessionState]
    sessions: int
    statuses: dict[str, int]
    updated: str | None
    workspace: str | None


class WorkspacePage(TypedDict):
    has_more: bool
    total: int
    workspaces: list[WorkspaceSummary]


class WorkspaceSummary(TypedDict):
    cost_usd: float
    cwd: str | None
    host: str | None
    open_asks: int
    sessions: int
    statuses: dict[str, int]
    updated: str | None
    workspace: str | None


class Writer(TypedDict):
    viewer: str
    actor: NotRequired[str]
