import { describe, expect, test } from "vitest";
import type { LogEvent } from "../src/client/protocol";
import type { Row } from "../src/model/rows";
import { apply, attach, attachAsks, fold, type Placed } from "../src/model/transcript";

let number = 0;

function event(type: string, data: object, more: Partial<LogEvent> = {}): Placed {
  number++;
  const made = { id: `e${number}`, type, v: 1, session: "s", time: "2026-01-01T00:00:00Z", epoch: 1, ...more, data };
  return { event: made as LogEvent };
}

const text = (words: string) => [{ type: "text", text: words }];
const rowsOf = (...events: Placed[]): Row[] => fold(events).transcript.rows;
const kinds = (rows: Row[]): string[] => rows.map((row) => row.kind);

function delta(at: number, words: string, more: object = {}): Placed {
  return event("message.delta", { block: 0, at, text: words, ...more }, { item: "m1" });
}

function said(rows: Row[], index = -1): string[] {
  const row = rows.at(index);
  return row?.kind === "assistant" ? row.parts.map((part) => part.text as string) : [];
}

describe("messages", () => {
  test("deltas become the block that the finished message replaces", () => {
    const open = rowsOf(delta(0, "Hel"), delta(3, "lo"));
    expect(open).toMatchObject([{ kind: "assistant", key: "m1", parts: [{ text: "Hello", open: true }] }]);
    const done = rowsOf(delta(0, "Hel"), event("message.assistant", { content: text("Hello!"), block: 0 }, { item: "m1" }));
    expect(done).toMatchObject([{ kind: "assistant", key: "m1", parts: [{ text: "Hello!", open: false }] }]);
  });

  test("a delta of a finished block changes nothing", () => {
    const { transcript, memory } = fold([event("message.assistant", { content: text("Hi"), block: 0 }, { item: "m1" })]);
    expect(apply(transcript, memory, delta(0, "Hi, late").event)).toBe(false);
    expect(said(transcript.rows)).toEqual(["Hi"]);
  });

  test("a delta of an earlier owner changes nothing", () => {
    const { transcript, memory } = fold([event("session.claimed", {}, { epoch: 2 })]);
    expect(apply(transcript, memory, delta(0, "old").event)).toBe(false);
    expect(transcript.rows).toEqual([]);
  });

  test("blocks of one message stand in their order, whatever order they come in", () => {
    const rows = rowsOf(
      event("message.assistant", { content: text("second"), block: 1 }, { item: "m1" }),
      event("message.assistant", { content: [{ type: "thinking", text: "first" }], block: 0 }, { item: "m1" }),
    );
    expect(said(rows)).toEqual(["first", "second"]);
  });

  test("an event that comes twice is one", () => {
    const twice = event("message.user", { content: text("go") });
    expect(kinds(rowsOf(twice, twice))).toEqual(["user"]);
  });

  test("a queued prompt moves to where its turn takes it up", () => {
    const rows = rowsOf(
      event("message.user", { content: text("one"), command: "c1" }),
      event("message.user", { content: text("two"), command: "c2", delivery: "queued" }),
      event("message.assistant", { content: text("answer one") }, { item: "m1" }),
      event("turn.completed", { outcome: "success" }),
      event("turn.started", { number: 2 }, { cause: "c2" }),
    );
    expect(kinds(rows)).toEqual(["user", "assistant", "turn", "user"]);
    expect(rows.at(-1)).toMatchObject({ command: "c2", delivery: "sent" });
  });

  test("an end of a turn closes what was being written", () => {
    const { transcript, memory } = fold([delta(0, "half"), event("turn.completed", { outcome: "aborted" })]);
    expect(transcript.rows[0]).toMatchObject({ parts: [{ text: "half", open: false }] });
    expect(apply(transcript, memory, delta(4, " more").event)).toBe(false);
  });
});

describe("tools", () => {
  test("a call is one row from its start to its end", () => {
    const rows = rowsOf(
      event("tool.started", { name: "Bash", kind: "execute", input: { command: "ls" } }, { item: "t1" }),
      event("tool.progress", { output: "a.txt", elapsed_s: 3 }, { item: "t1" }),
      event("tool.completed", { status: "failed", exit_code: 2, content: text("no") }, { item: "t1" }),
    );
    expect(rows).toMatchObject([{ kind: "tool", name: "Bash", status: "failed", exit: 2, elapsed: 3, output: "" }]);
  });

  test("a subagent's events stand below the call that started it", () => {
    const rows = rowsOf(
      event("tool.started", { name: "Task" }, { item: "t1" }),
      event("tool.started", { name: "Read" }, { item: "t2", lane: "t1" }),
      event("message.assistant", { content: text("found") }, { item: "m2", lane: "t1" }),
      event("tool.completed", { status: "completed" }, { item: "t2", lane: "t1" }),
      event("message.assistant", { content: text("done") }, { item: "m3" }),
    );
    expect(kinds(rows)).toEqual(["tool", "assistant"]);
    expect(rows[0]).toMatchObject({ rows: [{ kind: "tool", name: "Read", status: "completed" }, { kind: "assistant" }] });
  });

  test("a lane whose call is on an older page has a place until that page comes", () => {
    const inside = event("message.assistant", { content: text("x") }, { item: "m1", lane: "t1" });
    expect(rowsOf(inside)).toMatchObject([{ kind: "tool", key: "t1", name: "subagent", rows: [{ kind: "assistant" }] }]);
    const started = event("tool.started", { name: "Task" }, { item: "t1" });
    expect(rowsOf(started, inside)).toMatchObject([{ kind: "tool", name: "Task", rows: [{ kind: "assistant" }] }]);
  });
});

describe("asks", () => {
  const asked = () => event("permission.requested", { ask: "a1", name: "Bash", input: { command: "ls" } });

  test("an ask is open until its first end, which is the one that counts", () => {
    const { transcript, memory } = fold([asked()]);
    expect(transcript.open).toEqual(["a1"]);
    apply(transcript, memory, event("ask.decided", { ask: "a1", behaviour: "allow", by: "ann" }).event);
    apply(transcript, memory, event("ask.expired", { ask: "a1", behaviour: "deny" }).event);
    expect(transcript.open).toEqual([]);
    expect(transcript.rows).toMatchObject([{ kind: "ask", ended: { how: "decided", behaviour: "allow", by: "ann" } }]);
  });

  test("an open ask of the snapshot that no page has is shown, and one of the page only once", () => {
    const { transcript, memory } = fold([asked()]);
    const record = (ask: string, status: "open" | "decided") =>
      ({ kind: "permission", ask, session: "s", requested: { ask, name: "Bash", incarnation: "" }, time: "", status, incarnation: "", sequence: 1 }) as const;
    attachAsks(transcript, memory, [record("a1", "open"), record("a2", "open"), record("a3", "decided")]);
    expect(transcript.open).toEqual(["a1", "a2"]);
  });
});

test("who joins late has the text so far, and what comes then is put to it", () => {
  const { transcript, memory } = fold([]);
  attach(transcript, memory, [{ session: "s", item: "m1", block: 0, kind: "text", text: "so far" }]);
  apply(transcript, memory, delta(6, ", so good").event);
  expect(said(transcript.rows)).toEqual(["so far, so good"]);
});

test("an erased session shows nothing but that", () => {
  const rows = rowsOf(event("message.user", { content: text("secret") }), event("session.erased", { by: "root" }));
  expect(rows).toMatchObject([{ kind: "notice", text: "erased by root" }]);
});
