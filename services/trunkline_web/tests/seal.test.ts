/** The browser's half of trunkline_seal against what Python made of the same keys, and what Python opens of it (tests/unit/seal). */

import sodium from "libsodium-wrappers";
import { beforeAll, expect, test } from "vitest";
import known from "../../../tests/recordings/seal/python.json";
import { type Bytes, fromHex, text, toHex, utf8 } from "../src/seal/bytes";
import { BINARY, type Channel, CONTROL, Receiver, Sender, TEXT } from "../src/seal/channel";
import { pack, unpack } from "../src/seal/envelope";
import { Opening } from "../src/seal/handshake";
import { fingerprint, hostName, identityOf, ready, routeOf, signed } from "../src/seal/keys";
import { commitment, pairingName, parseLink, shortCode } from "../src/seal/link";

const LARGE = Uint8Array.from({ length: 66_000 }, (_, at) => at % 251);

beforeAll(() => ready);

const opening = (first?: string): Opening =>
  new Opening(
    identityOf(fromHex(known.device.secret)),
    fromHex(known.host.public),
    fromHex(known.sid),
    utf8('{"route":"x"}'),
    identityOf(fromHex(known.fresh_device)),
    first === undefined ? undefined : fromHex(first),
  );

test("keys, names and fingerprints are those of Python", () => {
  expect(toHex(identityOf(fromHex(known.host.secret)).public)).toBe(known.host.public);
  expect(fingerprint(fromHex(known.host.public))).toBe(known.host.fingerprint);
  expect(hostName(fromHex(known.host_route.public))).toBe(known.host_route.name);
  const route = routeOf(fromHex(known.device_route.seed));
  expect(toHex(route.public)).toBe(known.device_route.public);
  expect(toHex(signed(route, utf8("text")))).toBe(known.device_route.signature);
});

test("a pairing link, its name, and the six digits", () => {
  const link = parseLink(known.link.url);
  for (const part of ["route", "identity", "app", "secret"] as const) expect(toHex(link[part])).toBe(known.link[part]);
  expect(link.relay).toBe(known.link.relay);
  expect(pairingName(link.secret)).toBe(known.link.name);
  const [host, device] = known.numbers.map(fromHex) as [Bytes, Bytes];
  expect(toHex(commitment(device))).toBe(known.commitment);
  const code = shortCode(
    [fromHex(known.host_route.public), fromHex(known.host.public)],
    [fromHex(known.device_route.public), fromHex(known.device.public)],
    [host, device],
  );
  expect(code).toBe(known.code);
});

test.each(["", "https://relay.example/pair", "https://relay.example/pair#1.AAAA", "ftp://relay.example/pair#", "https://relay.example/pair#2.x"])(
  "%j is no link",
  (url) => expect(() => parseLink(url)).toThrow("this is no link"),
);

/** What the recorded frames say: text as it is, of bytes how many. */
function read(channel: { open: Channel["open"] }, frames: string[], pad: (block: number) => void): string[] {
  const said: string[] = [];
  for (const [at, frame] of frames.entries()) {
    if (at === frames.length - 1) pad(64);
    const message = channel.open(fromHex(frame));
    if (message === undefined) continue;
    if (message.kind === BINARY && message.content.length > 0) expect(message.content).toEqual(LARGE);
    said.push(`${message.kind} ${message.kind === BINARY ? message.content.length : text(message.content)}`);
  }
  return said;
}

test("what Python sealed opens", () => {
  const { channel, about } = opening(known.first).answered(fromHex(known.second));
  expect(text(about)).toBe(known.about_host);
  const said = read(channel, known.down, (block) => channel.pad(block));
  expect(said).toEqual(['2 {"opened":true}', "0 grüße", "1 66000", "1 0", '2 {"closed":{"code":1000,"reason":""}}']);
  expect(channel.ended).toBe(true);
  expect(() => channel.open(fromHex(known.down[0]!))).toThrow("nothing comes after");
});

test("both directions have the keys that Python has", () => {
  const { up } = opening(known.first).keys(identityOf(fromHex(known.fresh_host)).public);
  const receiver = new Receiver(up, fromHex(known.header_up), fromHex(known.sid));
  const said = read(receiver, known.up, (block) => (receiver.pad = block));
  expect(said).toEqual(['2 {"open":"/ws"}', "0 ä", "1 66000", '2 {"ack":1}', '2 {"closed":{"code":1000,"reason":""}}']);
});

test.each(["changed", "repeated", "left out", "another's"])("a frame that was %s ends the connection", (how) => {
  const sid = fromHex(known.sid);
  const sender = new Sender(LARGE.slice(0, 32), sid);
  const receiver = new Receiver(LARGE.slice(0, 32), sender.header, how === "another's" ? sid.map((byte) => byte + 1) : sid);
  const [one, two, three] = ["one", "two", "three"].map((word) => sender.seal(TEXT, utf8(word))[0]!) as [Uint8Array, Uint8Array, Uint8Array];
  if (how !== "another's") expect(text(receiver.open(one)!.content)).toBe("one");
  const next = { changed: two.map((byte, at) => (at === 3 ? byte ^ 1 : byte)), repeated: one, "left out": three, "another's": one }[how]!;
  expect(() => receiver.open(next)).toThrow("a frame was changed");
  expect(() => receiver.open(two)).toThrow("nothing comes after");
});

test.each([0, 1, 65_535])("a part of %i bytes that is not the last is refused", (size) => {
  const sid = fromHex(known.sid);
  const { state, header } = sodium.crypto_secretstream_xchacha20poly1305_init_push(LARGE.slice(0, 32));
  const receiver = new Receiver(LARGE.slice(0, 32), header, sid);
  const part = (bytes: number) =>
    sodium.crypto_secretstream_xchacha20poly1305_push(state, new Uint8Array(bytes), sid, sodium.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
  expect(receiver.open(part(65_536))).toBeUndefined();
  const short = part(size);
  expect(() => receiver.open(short)).toThrow("a part is not full");
});

test("envelopes are for one connection", () => {
  const sid = fromHex(known.sid);
  const packed = pack(sid, utf8("ct"));
  expect(toHex(packed)).toBe(`01${known.sid}00000002${toHex(utf8("ct"))}`);
  expect(text(unpack(sid, packed))).toBe("ct");
  expect(() => unpack(sid.map((byte) => byte + 1), packed)).toThrow("another connection's");
  expect(() => unpack(sid, packed.slice(0, -1))).toThrow("no envelope");
});

/** `TRUNKLINE_RECORD=1 npx vitest run tests/seal.test.ts -u` writes what Python opens: a first message, and a stream under the keys that come of the recorded one. */
test.runIf(import.meta.env.TRUNKLINE_RECORD)("records the browser's half", async () => {
  const made = opening();
  const { up } = opening(known.first).keys(identityOf(fromHex(known.fresh_host)).public);
  const sender = new Sender(up, fromHex(known.sid));
  const frames = [
    ...sender.seal(CONTROL, utf8('{"open":"/ws"}')),
    ...sender.seal(TEXT, utf8("ä")),
    ...sender.seal(BINARY, LARGE),
  ];
  sender.pad = 64;
  frames.push(...sender.seal(CONTROL, utf8('{"closed":{"code":1000,"reason":""}}'), true));
  const recorded = { from: "services/trunkline_web/tests/seal.test.ts", first: toHex(made.first), header_up: toHex(sender.header), up: frames.map(toHex) };
  await expect(`${JSON.stringify(recorded, null, 1)}\n`).toMatchFileSnapshot("../../../tests/recordings/seal/browser.json");
});
