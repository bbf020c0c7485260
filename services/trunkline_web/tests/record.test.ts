/** What a browser keeps of its host: a newer identity is the one device's that heard of it. */

import { beforeEach, expect, test, vi } from "vitest";
import { forget, isPaired, keep, learn, load, type Paired } from "../src/seal/record";

/** As IndexedDB has it: one transaction after the other, and in each what its requests ask for. */
const { values, kept } = vi.hoisted(() => {
  const values = new Map<string, unknown>();
  const request = <T>(result: T) => Object.assign(new EventTarget(), { result });
  const store = {
    get: (name: string) => request(values.get(name)),
    getKey: (name: string) => request(values.has(name) ? name : undefined),
    put: (value: unknown, name: string) => request(values.set(name, value)),
    delete: (name: string) => request(values.delete(name)),
  };
  let last: Promise<unknown> = Promise.resolve();
  const kept = (_: string, act: (from: typeof store) => ReturnType<typeof request>) => {
    const done = last.then(() => {
      const asked = act(store);
      asked.dispatchEvent(new Event("success"));
      return asked.result;
    });
    last = done;
    return done;
  };
  return { values, kept };
});

vi.mock("../src/client/kept", () => ({ kept, signingKey: () => Promise.resolve("key") }));

const bytes = (value: number) => new Uint8Array(32).fill(value);
const paired = (device: string, identity: number): Paired => ({
  relay: "https://relay.example",
  host: "box",
  route: bytes(1),
  identity: bytes(identity),
  device,
  actor: "ann",
  role: "owner",
  seed: bytes(2),
  secret: bytes(3),
  token: "tl_1",
});

beforeEach(() => values.clear());

test("a newer identity is kept", async () => {
  await keep(paired("dev_1", 4), bytes(9));
  await learn("dev_1", bytes(5), 2);
  expect(await load()).toEqual({ ...paired("dev_1", 5), number: 2 });
});

test("an older identity never replaces a newer one, whichever connection tells of it first", async () => {
  await keep(paired("dev_1", 4), bytes(9));
  for (const [identity, number] of [[6, 3], [5, 2], [7, 3]] as const) await learn("dev_1", bytes(identity), number);
  expect(await load()).toEqual({ ...paired("dev_1", 6), number: 3 });
});

test("of a host that does not count, the latest word counts", async () => {
  await keep({ ...paired("dev_1", 4), number: 5 }, bytes(9));
  await learn("dev_1", bytes(5), 0);
  expect(await load()).toEqual({ ...paired("dev_1", 5), number: 0 });
});

test("a connection of before a new pairing changes nothing of it", async () => {
  await keep(paired("dev_1", 4), bytes(9));
  await keep(paired("dev_2", 6), bytes(9));
  await learn("dev_1", bytes(5), 2);
  expect(await load()).toEqual(paired("dev_2", 6));
});

test("what is forgotten meanwhile does not come back", async () => {
  await keep(paired("dev_1", 4), bytes(9));
  await Promise.all([learn("dev_1", bytes(5), 2), forget()]);
  expect(await isPaired()).toBe(false);
});
