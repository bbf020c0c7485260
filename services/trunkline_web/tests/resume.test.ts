/**
 * What a page knows after any course of a connection: each fact once and in order, and the text that the log has. The rules are
 * those of the model client (trunkline_testkit/model_client.py).
 */

import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Row } from "../src/model/rows";
import type { SessionView } from "../src/store/session";
import { Gateway, SESSION } from "./gateway";

/** How the gateway answers whoever comes back. */
type Trouble = "log_unavailable" | "too_far";

type Step =
  | { do: "prompt" | "finish" | "whole" | "down" | "up" | "older" }
  | { do: "piece"; text: string; lost: boolean }
  | { do: "again"; count: number }
  | { do: "cut"; arrives: number; answer: Trouble | undefined }
  | { do: "diverge"; keep: number }
  | { do: "wait"; ms: number };

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("prompt" as const, "finish", "whole") }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("piece" as const), text: fc.constantFrom("one ", "wörd ", "😀"), lost: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 6, 12, 30, 1_500) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("cut" as const),
      arrives: fc.nat(4),
      answer: fc.constantFrom<(Trouble | undefined)[]>(undefined, undefined, "log_unavailable", "too_far"),
    }),
  },
  fc.record({ do: fc.constantFrom("down" as const, "up", "older") }),
  fc.record({ do: fc.constant("again" as const), count: fc.nat(5) }),
  fc.record({ do: fc.constant("diverge" as const), keep: fc.nat(10) }),
);

function act(gateway: Gateway, view: SessionView, step: Step): Promise<unknown> | void {
  switch (step.do) {
    case "prompt":
      return gateway.prompt("go");
    case "finish":
      return gateway.finish();
    case "whole":
      return gateway.whole();
    case "piece":
      return gateway.piece(step.text, step.lost);
    case "again":
      return gateway.again(step.count);
    case "cut":
      if (step.answer !== undefined) gateway.answers.push(step.answer);
      return gateway.cut(step.arrives);
    case "down":
      gateway.up = false;
      return gateway.cut(0);
    case "up":
      gateway.up = true;
      return;
    case "older":
      return void view.loadOlder();
    case "diverge":
      return gateway.diverge(step.keep);
    case "wait":
      return vi.advanceTimersByTimeAsync(step.ms);
  }
}

const textsOf = (rows: Row[]): string[] =>
  rows.flatMap((row) => {
    if (row.kind === "user") return [`user ${row.key}`];
    return row.kind === "assistant" ? row.parts.map((part) => `${row.key} ${part.at} ${part.text}`) : [];
  });

/** The same by the log, written anew. */
function told({ facts, writing }: Gateway): string[] {
  const rows = facts.map(({ id, type, item, data }: any) => (type === "message.user" ? `user ${id}` : `${item} 0 ${data.content[0].text}`));
  return writing === undefined ? rows : [...rows, `${writing.item} 0 ${writing.text}`];
}

let gateway: Gateway;
let store: typeof import("../src/store/session");
let world: typeof import("../src/store/world");

beforeAll(async () => {
  vi.useFakeTimers();
  vi.stubGlobal("location", { origin: "http://gateway" });
  vi.stubGlobal("sessionStorage", { getItem: () => null, removeItem() {} });
  vi.stubGlobal("WebSocket", class {
    constructor() {
      return new gateway.WebSocket();
    }
  });
  world = await import("../src/store/world");
  store = await import("../src/store/session");
});

afterAll(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function course(before: number, course: Step[]): Promise<void> {
  gateway = new Gateway();
  for (let number = 0; number < before; number++) gateway.prompt("long ago");
  world.connection.start("token");
  const view = store.watch(SESSION);
  try {
    for (const step of course) {
      await act(gateway, view, step);
      const keys = view.transcript.rows.map((row) => row.key);
      expect(new Set(keys).size, "a row stands twice").toBe(keys.length);
    }
    gateway.up = true;
    gateway.answers.splice(0);
    await vi.advanceTimersByTimeAsync(70_000);
    gateway.whole();
    await vi.advanceTimersByTimeAsync(1_000);
    for (let page = 0; view.older() && page < 10; page++) {
      void view.loadOlder();
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(view.failure()).toBe("");
    expect(textsOf(view.transcript.rows).sort()).toEqual(told(gateway).sort());
    gateway.finish();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(textsOf(view.transcript.rows)).toEqual(told(gateway));
  } finally {
    view.end();
    world.connection.stop();
    await vi.advanceTimersByTimeAsync(100);
  }
}

test("a page has what the log has, whatever became of its connections", { timeout: 120_000 }, async () => {
  const courses = fc.tuple(fc.constantFrom(0, 0, 3, 250), fc.array(steps, { maxLength: 60 }));
  await fc.assert(
    fc.asyncProperty(courses, ([before, all]) => course(before, all)),
    { numRuns: 200, seed: 1 },
  );
});
