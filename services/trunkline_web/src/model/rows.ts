/** What a transcript is made of: its rows, and what is remembered beside them. */

import type { AskRecord, Block, ErrorInfo, EventOf, Requested, Text, Usage } from "../client/protocol";
import { textOf } from "../client/protocol";
import type { Writing } from "./writing";

type Delivery = NonNullable<EventOf<"message.user">["data"]["delivery"]>;
type Outcome = EventOf<"turn.completed">["data"]["outcome"];
type PlanEntry = NonNullable<EventOf<"plan.updated">["data"]["entries"]>[number];

export interface Part {
  block: number;
  kind: "text" | "thinking";
  text: Text;
  /** It is still being written. */
  open: boolean;
  /** Its beginning is not known: above 0 the text has a hole before it. */
  at: number;
}

export interface Common {
  key: string;
  time: string;
  seq?: number | null;
  cursor?: string;
}

export type Row =
  | (Common & { kind: "user"; content: Block[]; author?: string | null; delivery: Delivery; synthetic: boolean; command?: string | null; item?: string | null })
  | (Common & { kind: "assistant"; parts: Part[]; aborted: boolean; model?: string | null; error?: ErrorInfo | null })
  | (Common & ToolRow)
  | (Common & { kind: "plan"; entries: PlanEntry[] })
  | (Common & { kind: "notice"; level: "info" | "warning" | "error"; text: string })
  | (Common & { kind: "turn"; outcome: Outcome; error?: ErrorInfo | null; usage?: Usage | null; cost?: number | null; duration?: number | null })
  | (Common & { kind: "ask"; ask: string; asked: AskRecord["kind"]; requested: Requested; ended?: Ended });

export interface ToolRow {
  kind: "tool";
  name: string;
  tool: string;
  title?: string | null;
  input: unknown;
  status: "running" | EventOf<"tool.completed">["data"]["status"];
  content: Block[];
  output: string;
  elapsed?: number | null;
  exit?: number | null;
  duration?: number | null;
  reason?: string | null;
  summary?: string;
  /** What a subagent did that this call started. */
  rows: Row[];
}

/** How an ask ended. */
export interface Ended {
  how: "decided" | "expired" | "withdrawn";
  behaviour?: string;
  by?: string | null;
  rule?: string | null;
  message?: string | null;
}

export interface Transcript {
  rows: Row[];
  /** Asks that wait for a decision, by id. */
  open: string[];
}

/** What is remembered beside the rows; nobody watches it. */
export class Memory {
  readonly events = new Set<string>();
  readonly writings = new Map<string, Writing>();
  readonly finished = new Set<string>();
  /** Ids of the messages, calls, asks and commands that have a row: of all others none is looked for. */
  readonly known = new Set<string>();
  epoch = 0;
}

export type AssistantRow = Extract<Row, { kind: "assistant" }>;
export type AskRow = Extract<Row, { kind: "ask" }>;

/** A call that has just begun. */
export function toolRow(item: string, time: string): Common & ToolRow {
  return {
    key: item,
    time,
    kind: "tool",
    name: "",
    tool: "other",
    input: null,
    status: "running",
    content: [],
    output: "",
    rows: [],
  };
}

/** The row of a call, in whatever lane it is. */
export function findTool(rows: Row[], item: string): ToolRow | undefined {
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index] as Row;
    if (row.kind !== "tool") continue;
    if (row.key === item) return row;
    const within = row.rows.length > 0 ? findTool(row.rows, item) : undefined;
    if (within !== undefined) return within;
  }
  return undefined;
}

export function findAsk(rows: Row[], ask: string): AskRow | undefined {
  const found = rows.findLast((row) => row.kind === "ask" && row.ask === ask);
  return found?.kind === "ask" ? found : undefined;
}

/** Where the rows of a lane go: below the call that started the subagent, or at the top. */
export function laneOf(rows: Row[], memory: Memory, lane: string | null | undefined, time: string): Row[] {
  if (!lane) return rows;
  const known = memory.known.has(lane) ? findTool(rows, lane) : undefined;
  if (known !== undefined) return known.rows;
  // The call stands on an older page; its name comes with that.
  memory.known.add(lane);
  rows.push({ ...toolRow(lane, time), name: "subagent", tool: "think" });
  return (rows.at(-1) as ToolRow).rows;
}

/** The text of a user's message, for a list or a copy. */
export function plainText(content: Block[]): string {
  return content.map((block) => (block.type === "text" ? textOf(block.text) : "")).join("");
}
