/**
 * A session's events folded into the rows of its transcript. Pure: no clock and no I/O.
 *
 * `apply` changes the state in place, so that a view that watches it redraws what changed and nothing else. An event that is
 * known already changes nothing. Older pages are put before by folding all again (`fold`).
 */

import { closing } from "./closing";
import type { AskRecord, EventOf, LogEvent, OpenBlock, Requested } from "../client/protocol";
import { textOf } from "../client/protocol";
import { assistant, delta, finish, progress, taken, user } from "./messages";
import { findAsk, findTool, laneOf, Memory, toolRow, type Common, type Row, type ToolRow, type Transcript } from "./rows";

export const empty = (): Transcript => ({ rows: [], open: [] });

export interface Placed {
  event: LogEvent;
  cursor?: string;
}

/** The transcript of events in order. */
export function fold(events: Placed[]): { transcript: Transcript; memory: Memory } {
  const transcript = empty();
  const memory = new Memory();
  for (const { event, cursor } of events) apply(transcript, memory, event, cursor);
  return { transcript, memory };
}

/** Puts an event into the transcript. False for one that was known already, or is of no use any more. */
export function apply(state: Transcript, memory: Memory, event: LogEvent, cursor?: string): boolean {
  if (event.type === "message.delta") return delta(state.rows, memory, event);
  if (event.type === "tool.progress") return progress(state.rows, memory, event);
  if (event.type === "terminal.screen") return false;
  if (memory.events.has(event.id)) return false;
  memory.events.add(event.id);
  memory.epoch = Math.max(memory.epoch, event.epoch ?? 0);
  fact(state, memory, event, cursor);
  return true;
}

/** The text so far of blocks that are being written, as a snapshot has it. */
export function attach(state: Transcript, memory: Memory, blocks: OpenBlock[]): void {
  for (const block of blocks) {
    delta(state.rows, memory, {
      time: "",
      item: block.item,
      lane: block.lane,
      data: { block: block.block, kind: block.kind, at: block.at ?? 0, text: block.text },
    });
  }
}

/** Asks of a snapshot that no page has brought: they are older than what is shown. */
export function attachAsks(state: Transcript, memory: Memory, records: AskRecord[]): void {
  for (const record of records) {
    if (record.status !== "open" || memory.known.has(record.ask)) continue;
    memory.known.add(record.ask);
    state.rows.push(askRow(record.requested, record.kind, { key: record.ask, time: record.time }));
    state.open.push(record.ask);
  }
}

function fact(state: Transcript, memory: Memory, event: LogEvent, cursor?: string): void {
  const common = { key: event.id, time: event.time, seq: event.seq, cursor };
  const rows = laneOf(state.rows, memory, event.lane, event.time);
  switch (event.type) {
    case "message.user":
      user(rows, memory, event, common);
      break;
    case "message.assistant":
      assistant(rows, memory, event, common);
      break;
    case "message.system":
      rows.push({ ...common, kind: "notice", level: event.data.level ?? "info", text: textOf(event.data.text) });
      break;
    case "tool.started":
      started(rows, memory, event, common);
      break;
    case "tool.completed":
      completed(rows, memory, event, common);
      break;
    case "tool.summary":
      for (const item of event.data.tools ?? []) {
        const row = findTool(rows, item);
        if (row !== undefined) row.summary = textOf(event.data.summary);
      }
      break;
    case "plan.updated":
      plan(rows, event, common);
      break;
    case "turn.started":
      if (event.cause) taken(rows, memory, event.cause);
      break;
    case "turn.completed":
      if (!event.lane) turnEnded(state, memory, event, common);
      break;
    case "permission.requested":
    case "question.asked":
    case "plan.proposed":
      asked(state, memory, event, common);
      break;
    case "ask.decided":
    case "ask.expired":
    case "ask.withdrawn":
      askEnded(state, event);
      break;
    case "error":
      rows.push({ ...common, kind: "notice", level: "error", text: `${event.data.code}: ${event.data.message}` });
      break;
    case "session.claimed":
    case "session.closed":
      endAll(state, memory);
      if (event.type === "session.closed") {
        const { words, bad } = closing(event.data);
        const last = textOf(event.data.last_error);
        const text = `${words === "closed" ? words : `closed: ${words}`}${last ? `\n${last}` : ""}`;
        rows.push({ ...common, kind: "notice", level: bad ? "warning" : "info", text });
      }
      break;
    case "session.erased":
      state.rows.splice(0, state.rows.length, {
        ...common,
        kind: "notice",
        level: "warning",
        text: `erased by ${event.data.by}`,
      });
      state.open.splice(0, state.open.length);
      break;
    default: {
      const text = noticeOf(event);
      if (text !== undefined) rows.push({ ...common, kind: "notice", level: "info", text });
    }
  }
}

function noticeOf(event: LogEvent): string | undefined {
  switch (event.type) {
    case "session.compacted": {
      const { data } = event;
      return `compacted (${data.trigger})${data.before && data.after ? `: ${data.before} → ${data.after} tokens` : ""}`;
    }
    case "session.resumed":
      return `resumed (${event.data.how})`;
    case "session.forked":
      return "forked from another session";
    case "session.handed_over":
      return `goes on in ${event.data.to === "terminal" ? "the agent's own terminal" : "the app"}`;
    case "session.status": {
      const { data } = event;
      return data.status === "retrying" || data.status === "stalled"
        ? `${data.status}${data.reason ? `: ${data.reason}` : ""}`
        : undefined;
    }
    case "file.rewound":
      return `files put back: ${(event.data.paths ?? []).join(", ")}`;
    case "command.failed":
    case "command.rejected": {
      const { data } = event;
      return `it failed: ${data.error.message || data.error.code}`;
    }
    default:
      return undefined;
  }
}

// Tools

function started(rows: Row[], memory: Memory, event: EventOf<"tool.started">, common: Common): void {
  const { data } = event;
  const item = event.item ?? event.id;
  let row = memory.known.has(item) ? findTool(rows, item) : undefined;
  if (row === undefined) {
    memory.known.add(item);
    rows.push({ ...toolRow(item, event.time), seq: common.seq, cursor: common.cursor });
    row = rows.at(-1) as ToolRow;
  }
  // told again with more: an agent may name a call before it knows its input
  row.name = data.name || row.name;
  row.tool = data.kind ?? row.tool;
  row.title = data.title ?? row.title;
  row.input = data.input ?? row.input;
}

function completed(rows: Row[], memory: Memory, event: EventOf<"tool.completed">, common: Common): void {
  const { data } = event;
  const item = event.item ?? event.id;
  let row = memory.known.has(item) ? findTool(rows, item) : undefined;
  if (row === undefined) {
    memory.known.add(item);
    rows.push({ ...toolRow(item, event.time), name: "tool", seq: common.seq, cursor: common.cursor });
    row = rows.at(-1) as ToolRow;
  }
  finish(memory, item, -1);
  row.status = data.status;
  row.content = data.content ?? [];
  row.exit = data.exit_code;
  row.duration = data.duration_ms;
  row.reason = data.reason;
  if (row.content.length > 0) row.output = "";
}

function plan(rows: Row[], event: EventOf<"plan.updated">, common: Common): void {
  const entries = event.data.entries ?? [];
  // a plan that only moves on stays where it is
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index] as Row;
    if (row.kind === "turn" || row.kind === "user") break;
    if (row.kind === "plan") {
      row.entries = entries;
      return;
    }
  }
  rows.push({ ...common, kind: "plan", entries });
}

// Turns and asks

function turnEnded(state: Transcript, memory: Memory, event: EventOf<"turn.completed">, common: Common): void {
  const { data } = event;
  endAll(state, memory);
  state.rows.push({
    ...common,
    kind: "turn",
    outcome: data.outcome,
    error: data.error,
    usage: data.usage,
    cost: data.cost_usd,
    duration: data.duration_ms,
  });
}

/** What is still being written when its turn or its owner ends is never finished. */
function endAll(state: Transcript, memory: Memory): void {
  for (const key of memory.writings.keys()) memory.finished.add(key);
  memory.writings.clear();
  for (let index = state.rows.length - 1; index >= 0; index--) {
    const row = state.rows[index] as Row;
    if (row.kind === "turn") break;
    if (row.kind === "assistant") for (const part of row.parts) if (part.open) part.open = false;
  }
}

const ASKED = { "permission.requested": "permission", "question.asked": "question", "plan.proposed": "plan" } as const;

function asked(state: Transcript, memory: Memory, event: EventOf<keyof typeof ASKED>, common: Common): void {
  const kind = ASKED[event.type];
  if (memory.known.has(event.data.ask)) return;
  memory.known.add(event.data.ask);
  state.rows.push(askRow(event.data, kind, { ...common, key: event.data.ask }));
  state.open.push(event.data.ask);
}

function askRow(requested: Requested, asked: AskRecord["kind"], common: Common): Row {
  return { ...common, kind: "ask", ask: requested.ask, asked, requested };
}

function askEnded(state: Transcript, event: EventOf<"ask.decided" | "ask.expired" | "ask.withdrawn">): void {
  const { data } = event;
  const open = state.open.indexOf(data.ask);
  if (open >= 0) state.open.splice(open, 1);
  const row = findAsk(state.rows, data.ask);
  // the first end counts
  if (row === undefined || row.ended !== undefined) return;
  if (event.type === "ask.decided") {
    const { behaviour, by, rule, message } = event.data;
    row.ended = { how: "decided", behaviour, by, rule, message };
  } else if (event.type === "ask.expired") {
    row.ended = { how: "expired", behaviour: event.data.behaviour };
  } else {
    row.ended = { how: "withdrawn", behaviour: event.data.why };
  }
}
