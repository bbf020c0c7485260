import { beforeEach, expect, test, vi } from "vitest";

const call = vi.fn<(method: string, params: { id: string }) => Promise<unknown>>();
vi.mock("../src/store/world", () => ({ connection: { call } }));

/** A tab: the outbox as its page has it. */
async function tab(): Promise<typeof import("../src/store/outbox")> {
  vi.resetModules();
  return import("../src/store/outbox");
}

async function failure(code: string): Promise<Error> {
  const { TrunklineError } = await import("trunkline-client");
  return new TrunklineError(code, code);
}

const prompt = (id: string) => ({ id, session: "s", content: [{ type: "text" as const, text: id }], delivery: "auto" as const });
const tick = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
  call.mockReset();
  const kept: Record<string, string> = {};
  const methods = {
    getItem: (key: string) => kept[key] ?? null,
    setItem: (key: string, value: string) => void (kept[key] = value),
    removeItem: (key: string) => void delete kept[key],
  };
  vi.stubGlobal("localStorage", new Proxy(kept, { get: (_, key: string) => methods[key as keyof typeof methods] ?? kept[key] }));
});

test("a prompt that waits in one tab outlives what another tab sends", async () => {
  call.mockRejectedValue(await failure("closed"));
  const one = await tab();
  const other = await tab();
  one.submit(prompt("cmd_1"));
  await tick();
  call.mockResolvedValue({});
  other.submit(prompt("cmd_2"));
  await tick();
  expect(other.waiting).toHaveLength(0);
  expect((await tab()).waiting.map(({ id }) => id)).toEqual(["cmd_1"]);
});

test("prompts reach the log in their order, though the first is sent again", async () => {
  const there = await tab();
  const taken: string[] = [];
  call.mockRejectedValueOnce(await failure("closed"));
  there.submit(prompt("cmd_1"));
  there.submit(prompt("cmd_2"));
  await tick();
  call.mockImplementation(async (_, { id }) => {
    await new Promise((done) => setTimeout(done, id === "cmd_1" ? 100 : 1));
    taken.push(id);
  });
  there.flush();
  await vi.advanceTimersByTimeAsync(200);
  expect(taken).toEqual(["cmd_1", "cmd_2"]);
});

test("what nobody answered for is sent again as the same prompt; what was refused is not", async () => {
  const there = await tab();
  call.mockRejectedValueOnce(await failure("timeout"));
  there.submit(prompt("cmd_1"));
  await tick();
  expect(there.waiting[0]?.error).toBeUndefined();
  call.mockResolvedValue({});
  await vi.advanceTimersByTimeAsync(3_000);
  expect(call.mock.calls.map(([, { id }]) => id)).toEqual(["cmd_1", "cmd_1"]);
  call.mockRejectedValue(await failure("forbidden"));
  there.submit(prompt("cmd_2"));
  await tick();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(there.waiting.map(({ error }) => error)).toEqual(["forbidden"]);
  expect(call).toHaveBeenCalledTimes(3);
});
