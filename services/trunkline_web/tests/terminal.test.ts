/** A viewer of a terminal over connections that come late, end, or are dead without saying so. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TerminalLink } from "../src/client/terminal";

class Socket {
  static all: Socket[] = [];
  readyState = 0;
  said: Record<string, any>[] = [];
  closes = 0;
  onopen = (): void => undefined;
  onmessage = (_: { data: string }): void => undefined;
  onclose = (_: { reason: string }): void => undefined;

  constructor(readonly url: string) {
    Socket.all.push(this);
  }

  send(text: string): void {
    this.said.push(JSON.parse(text));
  }

  close(): void {
    this.closes++;
  }

  opens(): void {
    this.readyState = 1;
    this.onopen();
  }

  ends(reason = ""): void {
    this.readyState = 3;
    this.onclose({ reason });
  }

  hears(said: object): void {
    this.onmessage({ data: JSON.stringify(said) });
  }

  get types(): string[] {
    return this.said.map(({ type }) => type);
  }
}

const MINE = { type: "state", state: { writer: { viewer: "me" } } };
const OTHERS = { type: "state", state: { writer: { viewer: "bob" } } };
let notes: string[];

function link(): TerminalLink {
  const screen = { print: () => undefined, state: () => undefined, note: (words: string) => void notes.push(words) };
  return new TerminalLink("ws://x/ws/terminal/ses_1", "me", undefined, screen, Socket as unknown as new (url: string) => WebSocket);
}

beforeEach(() => {
  Socket.all = [];
  notes = [];
  vi.useFakeTimers();
  vi.setSystemTime(1_000_000);
  vi.stubGlobal("WebSocket", { OPEN: 1 });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("the keyboard that is asked for before there is a connection is taken once there is one", () => {
  const made = link();
  made.take(true);
  Socket.all[0]!.opens();
  expect(Socket.all[0]!.said).toEqual([
    { type: "hello", viewer: "me", history: 1000 },
    { type: "take", force: true },
  ]);
});

test.each([
  { what: "it is there", heard: [MINE], again: [false] },
  { what: "it was refused", heard: [{ type: "error", of: "take", error: { code: "terminal_taken", message: "bob types" } }], again: [] },
  { what: "nobody has answered", heard: [OTHERS], again: [true] },
  { what: "another has taken it", heard: [MINE, OTHERS], again: [] },
])("where $what, the next connection asks for it with force: $again", ({ heard, again }) => {
  const made = link();
  Socket.all[0]!.opens();
  made.take(true);
  Socket.all[0]!.hears({ type: "hello", viewer: "me" });
  for (const one of heard) Socket.all[0]!.hears(one);
  Socket.all[0]!.ends();
  vi.advanceTimersByTime(60_000);
  Socket.all[1]!.opens();
  expect(Socket.all[1]!.said.slice(1)).toEqual(again.map((force) => ({ type: "take", force })));
});

test("what is released before there is a connection is not taken", () => {
  const made = link();
  made.take(false);
  made.release();
  Socket.all[0]!.opens();
  expect(Socket.all[0]!.types).toEqual(["hello"]);
});

test("a connection from before the main line was lost is given up at once, and one from after it is kept", () => {
  const made = link();
  const [dead] = Socket.all as [Socket];
  dead.opens();
  vi.setSystemTime(1_005_000);
  made.renew(1_003_000);
  expect(Socket.all.length).toBe(2);
  expect(dead.closes).toBe(1);
  // whatever the dead one still says is no news
  dead.hears({ type: "error", error: { code: "internal", message: "late" } });
  dead.ends();
  vi.advanceTimersByTime(60_000);
  expect(notes).toEqual([]);
  made.renew(1_003_000);
  expect(Socket.all.length).toBe(2);
});

test("one that waits tries at once, and one that was ended for good never", () => {
  const made = link();
  Socket.all[0]!.ends();
  made.renew();
  expect(Socket.all.length).toBe(2);
  vi.advanceTimersByTime(60_000);
  expect(Socket.all.length).toBe(2);
  Socket.all[1]!.ends("revoked");
  made.renew(Date.now() + 1);
  expect(Socket.all.length).toBe(2);
});

test("a connection on which nothing comes is asked, and given up without an answer", () => {
  link();
  const [first] = Socket.all as [Socket];
  first.opens();
  first.hears({ type: "hello", viewer: "me", answers: true });
  vi.advanceTimersByTime(21_000);
  expect(first.types).toEqual(["hello", "ping"]);
  first.hears({ type: "pong" });
  vi.advanceTimersByTime(15_000);
  expect(Socket.all.length).toBe(1);
  vi.advanceTimersByTime(15_000);
  expect([Socket.all.length, first.closes]).toEqual([2, 1]);
});

test("a gateway that answers no pings is sent none", () => {
  const made = link();
  Socket.all[0]!.opens();
  Socket.all[0]!.hears({ type: "hello", viewer: "me" });
  vi.advanceTimersByTime(120_000);
  made.probe();
  vi.advanceTimersByTime(120_000);
  expect([Socket.all.length, ...Socket.all[0]!.types]).toEqual([1, "hello"]);
});
