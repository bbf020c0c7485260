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
  await learn("dev_1", bytes(5));
  expect(await load()).toEqual(paired("dev_1", 5));
});

test("a connection of before a new pairing changes nothing of it", async () => {
  await keep(paired("dev_1", 4), bytes(9));
  await keep(paired("dev_2", 6), bytes(9));
  await learn("dev_1", bytes(5));
  expect(await load()).toEqual(paired("dev_2", 6));
});

test("what is forgotten meanwhile does not come back", async () => {
  await keep(paired("dev_1", 4), bytes(9));
  await Promise.all([learn("dev_1", bytes(5)), forget()]);
  expect(await isPaired()).toBe(false);
});
