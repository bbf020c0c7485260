/** The gateway's protocol, as far as the app reads it. Unknown fields and types pass: the log may be newer than the page. */

export type Role = "viewer" | "participant" | "approver" | "owner";

export interface BlobRef {
  sha256: string;
  size: number;
  media_type?: string;
  preview?: string;
}

/** A text that may have been moved to the blob store. */
export type Text = string | BlobRef;

export interface Block {
  type: string;
  text?: Text;
  path?: string;
  name?: string;
  media_type?: string;
  data?: Text;
  url?: string;
  old?: Text;
  new?: Text;
  unified?: Text;
  language?: string;
  output?: Text;
  exit_code?: number;
  uri?: string;
  content?: unknown;
}

export interface Usage {
  input?: number;
  output?: number;
  cache_write?: number;
  cache_read?: number;
  reasoning?: number;
  cost_usd?: number;
}

export interface ErrorInfo {
  code: string;
  message: string;
  details?: Record<string, unknown>;
}

/** The envelope of an event. `data` is typed by `type`; what reads it takes care. */
export interface LogEvent {
  id: string;
  type: string;
  session: string;
  time: string;
  seq?: number;
  epoch?: number;
  turn?: string;
  item?: string;
  lane?: string;
  cause?: string;
  source?: { actor: string; via?: string };
  data: any;
}

export interface Choice {
  id: string;
  name?: string;
  description?: string;
  hint?: string;
}

export interface Capabilities {
  interrupt?: boolean;
  resume?: boolean;
  fork?: boolean;
  model_switching?: boolean;
  mode_switching?: boolean;
  thinking?: boolean;
  slash_commands?: boolean;
  image_input?: boolean;
  steering?: boolean;
  queueing?: boolean;
  compaction?: boolean;
  permissions?: boolean;
  terminal?: boolean;
  options?: string[];
}

export interface SessionState {
  session: string;
  status: string;
  status_since?: string | null;
  title?: string | null;
  adapter?: string | null;
  agent?: string | null;
  cwd?: string | null;
  host?: string | null;
  workspace?: string | null;
  updated?: string | null;
  created?: string | null;
  seq: number;
  epoch: number;
  model?: string | null;
  mode?: string | null;
  thinking?: string | null;
  capabilities?: Capabilities | null;
  commands: Choice[];
  models: Choice[];
  modes: Choice[];
  turn?: { id: string | null; number: number; started: string } | null;
  last_turn?: { outcome: string; error?: ErrorInfo | null } | null;
  terminal?: { columns: number; rows: number } | null;
  interface?: string;
  open_asks: string[];
  usage: Usage;
  cost_usd?: number | null;
  context: { used?: number | null; size?: number | null };
  last_text?: string | null;
  last_error?: { code: string; message: string } | null;
  retry?: { attempt?: number | null; reason?: string | null } | null;
  closed?: { reason: string } | null;
  archived: boolean;
}

export interface AskOption {
  id: string;
  name?: string;
  kind?: string;
}

export interface Question {
  id: string;
  text: string;
  header?: string;
  options?: { label: string; description?: string }[];
  multiple?: boolean;
  free_text?: boolean;
}

export interface Requested {
  ask: string;
  name?: string;
  kind?: string;
  title?: string;
  input?: unknown;
  options?: AskOption[];
  suggestions?: unknown;
  description?: string;
  reason?: string;
  tool?: string;
  questions?: Question[];
  message?: string;
  plan?: Text;
  file?: string;
}

export interface AskRecord {
  kind: "permission" | "question" | "plan";
  ask: string;
  session: string;
  requested: Requested;
  time: string;
  status: "open" | "decided" | "expired" | "withdrawn" | "lost";
  lane?: string;
  routed?: { rule?: string; expires_at?: string; quorum?: number; signed?: boolean; role?: Role } | null;
  decision?: { behaviour: string; by: string; rule?: string; message?: string } | null;
  withdrawn?: string | null;
}

export interface OpenBlock {
  session: string;
  item: string;
  block: number;
  kind: string;
  text: string;
  at?: number;
  lane?: string;
  turn?: string;
}

export interface Snapshot {
  state?: SessionState | null;
  sessions?: SessionState[];
  total?: number;
  asks: AskRecord[];
  blocks: OpenBlock[];
}

export interface Gap {
  reason: string;
  cursor?: string;
  snapshot?: Snapshot;
}

export interface Opened {
  subscription: string;
  cursor: string;
  snapshot?: Snapshot;
  gap?: Gap;
}

export interface Hello {
  actor: string;
  role: Role;
  device?: string | null;
  host: string;
  version: string;
  methods: string[];
  silent_s: number;
}

export interface Presence {
  client: string;
  actor: string;
  role?: Role;
  program?: string;
  doing: "watching" | "typing";
}

/** The text itself, or the preview of what was moved to the blob store. */
export function textOf(text: Text | null | undefined): string {
  if (text === null || text === undefined) return "";
  return typeof text === "string" ? text : (text.preview ?? "");
}
