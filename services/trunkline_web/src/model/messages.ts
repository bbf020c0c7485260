/** Messages and what is being written of them, folded into rows. Pure. */

import type { EventOf } from "../client/protocol";
import { findTool, laneOf, type AssistantRow, type Common, type Memory, type Part, type Row } from "./rows";
import { begin, lay } from "./writing";

/** A prompt; a queued one that is sent moves to where it was. */
export function user(rows: Row[], memory: Memory, event: EventOf<"message.user">, common: Common): void {
  const { data } = event;
  const { command } = data;
  if (command && memory.known.has(command)) {
    const known = rows.findLastIndex((row) => row.kind === "user" && row.command === command);
    if (known >= 0) rows.splice(known, 1);
  }
  if (command) memory.known.add(command);
  rows.push({
    ...common,
    kind: "user",
    content: data.content ?? [],
    author: data.author ?? event.source?.actor,
    delivery: data.delivery ?? "sent",
    synthetic: data.synthetic ?? false,
    command,
    item: event.item,
  });
}

/** The turn of a queued prompt begins: it moves to where it was taken up. */
export function taken(rows: Row[], memory: Memory, command: string): void {
  if (!memory.known.has(command)) return;
  const at = rows.findLastIndex((row) => row.kind === "user" && row.command === command);
  const row = rows[at];
  if (row?.kind !== "user" || row.delivery !== "queued") return;
  rows.splice(at, 1);
  rows.push({ ...row, delivery: "sent" });
}

/** A finished block or message: what was written of it gives way. */
export function assistant(rows: Row[], memory: Memory, event: EventOf<"message.assistant">, common: Common): void {
  const { data } = event;
  const item = event.item ?? event.id;
  const row = message(rows, memory, item, common);
  if (row.seq === undefined && row !== rows.at(-1)) settle(rows, item);
  const first = data.block;
  for (const [number, content] of (data.content ?? []).entries()) {
    const block = (first ?? 0) + number;
    finish(memory, item, block);
    if (content.type !== "text" && content.type !== "thinking") continue;
    put(row, { block, kind: content.type, text: content.text, open: false, at: 0 });
  }
  if (first === undefined || first === null) {
    finish(memory, item, -1);
    // the message is whole: what was under way and does not stand in it was never said
    row.parts = row.parts.filter((part) => !part.open);
  }
  row.aborted = data.aborted ?? row.aborted;
  row.model = data.model ?? row.model;
  row.error = data.error ?? row.error;
  row.seq = common.seq;
  row.cursor = common.cursor;
}

function message(rows: Row[], memory: Memory, item: string, common: Common): AssistantRow {
  if (memory.known.has(item)) {
    const known = rows.findLast((row) => row.kind === "assistant" && row.key === item);
    if (known?.kind === "assistant") return known;
  }
  memory.known.add(item);
  rows.push({ ...common, key: item, kind: "assistant", parts: [], aborted: false });
  return rows.at(-1) as AssistantRow;
}

/** A message stands where its first block was finished, as for whoever comes later, and not where the first piece of it came. */
function settle(rows: Row[], item: string): void {
  const at = rows.findLastIndex((row) => row.kind === "assistant" && row.key === item);
  rows.push(...rows.splice(at, 1));
}

function put(row: AssistantRow, part: Part): void {
  const known = row.parts.findIndex((other) => other.block === part.block);
  if (known >= 0) Object.assign(row.parts[known] as Part, part);
  else {
    const after = row.parts.findIndex((other) => other.block > part.block);
    row.parts.splice(after < 0 ? row.parts.length : after, 0, part);
  }
}

export type Piece = Pick<EventOf<"message.delta">, "item" | "lane" | "epoch" | "time" | "data">;

/** A piece of a block that is being written. False where it is of no use. */
export function delta(rows: Row[], memory: Memory, event: Piece): boolean {
  const { data } = event;
  const item = event.item ?? "";
  const block = data.block ?? 0;
  if ((event.epoch ?? memory.epoch) < memory.epoch || isFinished(memory, item, block)) return false;
  const key = `${item}/${block}`;
  const known = memory.writings.get(key);
  const writing = known === undefined ? begin(data.at ?? 0, data.text) : lay(known, data.at ?? 0, data.text);
  memory.writings.set(key, writing);
  const kind = data.kind ?? "text";
  if (kind === "tool_output") {
    const row = memory.known.has(item) ? findTool(rows, item) : undefined;
    if (row !== undefined) row.output = writing.text;
  } else if (kind === "text" || kind === "thinking") {
    const row = message(laneOf(rows, memory, event.lane, event.time), memory, item, { key: item, time: event.time });
    put(row, { block, kind, text: writing.text, open: true, at: writing.at });
  }
  return true;
}

/** How far a call is. */
export function progress(rows: Row[], memory: Memory, event: EventOf<"tool.progress">): boolean {
  const row = findTool(rows, event.item ?? "");
  if (row === undefined || row.status !== "running" || (event.epoch ?? memory.epoch) < memory.epoch) return false;
  row.elapsed = event.data.elapsed_s ?? row.elapsed;
  row.output = event.data.output ?? row.output;
  return true;
}

/** Nothing that comes later of a block counts; block -1 is the whole item. */
export function finish(memory: Memory, item: string, block: number): void {
  memory.finished.add(`${item}/${block}`);
  memory.writings.delete(`${item}/${block}`);
}

function isFinished(memory: Memory, item: string, block: number): boolean {
  return memory.finished.has(`${item}/${block}`) || memory.finished.has(`${item}/-1`);
}
