/** The window of a sealed WebSocket, and what a message costs in it: as trunkline_seal/channel.py and trunkline_client/sealed.py have them. */

import { beforeEach, expect, test, vi } from "vitest";
import costs from "../../../tests/recordings/seal/costs.json";
import { utf8 } from "../src/seal/bytes";
import { cost, MAX_PAD, MOST_WAITING, PART_BYTES, TEXT } from "../src/seal/channel";
import { SealedSocket } from "../src/seal/socket";
import { Frames, identityIn } from "../src/seal/wire";

/** A wire on which every message is filled up to MAX_PAD. */
class Padded {
  ended = false;
  readonly sent: number[] = [];
  readonly said: unknown[] = [];
  private coming: { kind: number; content: Uint8Array }[] = [];
  private wake: (() => void) | undefined;
  pad = (): void => undefined;
  close = (): void => undefined;
  cost = (content: Uint8Array): number => cost(content.length, MAX_PAD);
  send = (kind: number): number => this.sent.push(kind);
  say = (value: unknown): number => this.said.push(value);
  hear = async (): Promise<unknown> => ({ opened: true });

  come(kind: number, content: string): void {
    this.coming.push({ kind, content: utf8(content) });
    this.wake?.();
  }

  async next(): Promise<unknown> {
    while (this.coming.length === 0) await new Promise<void>((resolve) => (this.wake = resolve));
    return this.coming.shift();
  }
}

const { there } = vi.hoisted(() => ({ there: { wire: undefined as unknown, learned: [] as unknown[][] } }));
const paired = { device: "dev_1", relay: "https://relay.example", route: new Uint8Array(32), seed: new Uint8Array(32), secret: new Uint8Array(32) };
vi.mock("../src/seal/record", () => ({ load: async () => paired, learn: async (...said: unknown[]) => void there.learned.push(said), vouch: async () => undefined }));
vi.mock("../src/seal/wire", async (original) => ({
  ...(await original<typeof import("../src/seal/wire")>()),
  reach: async () => ({ wire: there.wire, about: { identity: `${"A".repeat(43)}=`, number: 7 } }),
  deviceProof: () => undefined,
}));

const wire = (): Padded => there.wire as Padded;
beforeEach(() => {
  there.wire = new Padded();
  there.learned = [];
});

async function opened(listener: Partial<ConstructorParameters<typeof SealedSocket>[1]> = {}): Promise<SealedSocket> {
  return new Promise((resolve) => {
    const socket: SealedSocket = new SealedSocket("/ws", {
      opened: () => resolve(socket),
      message: () => undefined,
      closed: () => undefined,
      ...listener,
    });
  });
}

test.each(costs)("a message costs what both languages say: $size bytes, padded to $pad", ({ size, pad, cost: said }) => {
  expect(cost(size, pad)).toBe(said);
});

test("no more small messages are sent than the window takes", async () => {
  const socket = await opened();
  for (let count = 0; count < 100; count++) socket.send("x");
  expect(wire().sent.length).toBe(8);
  wire().come(2, `{"ack":${3 * 65664}}`);
  await vi.waitFor(() => expect(wire().sent.length).toBe(11));
  socket.close();
});

test("what was taken is told as it costs", async () => {
  const sizes: number[] = [];
  const socket = await opened({ message: (_, size) => sizes.push(size) });
  for (let count = 0; count < 2; count++) wire().come(TEXT, "x");
  await vi.waitFor(() => expect(sizes).toEqual([65664, 65664]));
  for (const size of sizes) socket.taken(size);
  expect(wire().said.slice(1)).toEqual([{ ack: 65664 }, { ack: 131328 }]);
  socket.close();
});

test("a page that takes nothing of a host that goes on is no place for all of it", async () => {
  const large = "x".repeat(8 * 1024 * 1024);
  let given = 0;
  const ended = new Promise<unknown[]>((resolve) => {
    void opened({ message: () => (given += large.length), closed: (...how) => resolve(how) });
  });
  for (let count = 0; count < 10; count++) wire().come(TEXT, large);
  expect(await ended).toEqual([1006, "the host sends more than was acknowledged", undefined]);
  expect(given).toBeLessThan(MOST_WAITING);
  expect(given).toBeGreaterThan(MOST_WAITING - 2 * large.length);
});

test.each(["large", "empty"])("a flood of %s frames ends the connection, and none of it is kept", async (how) => {
  const socket = { close: vi.fn(), onmessage: undefined as unknown as (event: { data: unknown }) => void };
  const frames = new Frames(socket as unknown as WebSocket);
  const frame = new ArrayBuffer(how === "large" ? PART_BYTES : 0);
  const most = Math.floor(MOST_WAITING / (frame.byteLength + 128));
  socket.onmessage({ data: frame });
  expect((await frames.next()).length).toBe(frame.byteLength);
  for (let count = 0; count < most; count++) socket.onmessage({ data: frame });
  expect(socket.close).not.toHaveBeenCalled();
  for (let count = 0; count < 2; count++) socket.onmessage({ data: frame });
  expect(socket.close).toHaveBeenCalled();
  await expect(frames.next()).rejects.toMatchObject({ code: "too_large" });
});

test("what is told of the host's identity is learned with its number", async () => {
  const socket = await opened();
  wire().come(2, `{"identity":"${"B".repeat(42)}A=","number":8}`);
  await vi.waitFor(() => expect(there.learned.length).toBe(2));
  expect(there.learned.map(([device, , number]) => [device, number])).toEqual([["dev_1", 7], ["dev_1", 8]]);
  socket.close();
});

test.each([{ identity: "AA==", number: 1 }, { identity: 7 }, {}, { identity: `${"A".repeat(43)}=`, number: 1.5 }])(
  "%j is no identity",
  (said) => expect(() => identityIn(said)).toThrow("the host's identity is none"),
);
