import { beforeEach, expect, test, vi } from "vitest";
import type { Listener } from "../src/client/connection";

const call = vi.fn<(method: string, params: Record<string, any>) => Promise<unknown>>();
let told: Listener;
vi.mock("../src/client/connection", () => ({
  isClosed: () => false,
  Line: class {
    call = call;
    start = () => undefined;
    follow = (_: object, listener: Listener) => void (told = listener);
  },
}));
vi.mock("../src/seal/record", () => ({ isPaired: async () => false, forget: async () => undefined }));

/** A gateway's sessions: `many`, the last one the latest. */
const ids = (many: number) => Array.from({ length: many }, (_, at) => `ses_${many - at}`);
const state = (session: string) => ({ session, open_asks: [] });
const event = (type: string, session: string) => told.event({ type, session, data: {} } as never, undefined);
const ask = (session: string) => ({ ask: `ask_${session}`, session, status: "open", time: "", requested: {} });

async function world(many: number, listed: number, asks: object[] = []): Promise<typeof import("../src/store/world")> {
  vi.resetModules();
  vi.stubGlobal("location", { origin: "http://here", pathname: "/", hash: "" });
  vi.stubGlobal("addEventListener", () => undefined);
  vi.stubGlobal("document", { addEventListener: () => undefined });
  vi.stubGlobal("sessionStorage", { getItem: () => null });
  let all = ids(many);
  call.mockImplementation(async (method, { offset = 0, limit, search, session }) => {
    if (method === "session.get") {
      if (!all.includes(session)) all = [session, ...all];
      return { state: state(session), asks: [] };
    }
    const wanted = search === undefined ? all : all.filter((one) => one === search);
    return { sessions: wanted.slice(offset, offset + limit).map(state), total: wanted.length };
  });
  const made = await import("../src/store/world");
  await made.begin();
  told.opened({ cursor: "c", snapshot: { sessions: ids(many).slice(0, listed).map(state), total: many, asks } } as never);
  return made;
}

beforeEach(() => void vi.useFakeTimers());

test("what was looked for leaves no hole when older sessions are listed", async () => {
  const { bring, moreSessions, older, sessions } = await world(500, 200);
  await bring({ search: "ses_290" });
  expect([sessions().length, older()]).toEqual([201, 300]);
  await moreSessions();
  await moreSessions();
  expect([sessions().length, older()]).toEqual([500, 0]);
});

test("a new session is one more, an old one that wakes is one less of the older", async () => {
  const { older, sessions } = await world(300, 200);
  event("session.created", "ses_301");
  await vi.advanceTimersByTimeAsync(1_000);
  expect([sessions().length, older()]).toEqual([201, 100]);
  event("turn.started", "ses_7");
  await vi.advanceTimersByTimeAsync(1_000);
  expect([sessions().length, older()]).toEqual([202, 99]);
});

test("an ask comes with its session, however old, and goes with it", async () => {
  const { older, openAsks, world: now } = await world(300, 200, [ask("ses_3")]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(now.sessions.ses_3).toBeDefined();
  expect(older()).toBe(100);
  event("session.erased", "ses_3");
  expect(now.sessions.ses_3).toBeUndefined();
  expect(openAsks()).toEqual([]);
});
