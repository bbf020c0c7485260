/** A device's way through a relay up to its host's answer, and its messages from then on. */

import { TrunklineError } from "trunkline-client";
import { type Bytes, fromBase64, fromHex, joined, text, toBase64, utf8 } from "./bytes";
import { badSeal, type Channel, CONTROL, FRAME_COST, type Message, MOST_WAITING } from "./channel";
import { pack, unpack } from "./envelope";
import { Opening } from "./handshake";
import { hostName, type Pair, ready, signed } from "./keys";

/** What a relay or a host says in JSON. */
export type Said = Record<string, any>;

export interface Wanted {
  relay: string;
  route: Bytes;
  /** The host's identity. */
  host: Bytes;
  identity: Pair;
  about: Said;
  /** What answers the relay's challenge: of this relay, this host's name. */
  proof: (relay: string, name: string, challenge: Bytes) => Said;
}

/** The connection is over, for no reason that anybody gave. */
export class CutError extends Error {}

/** What comes by a WebSocket, in order, for whoever asks for the next. */
export class Frames {
  private waiting: (string | Bytes)[] = [];
  /** Bytes of them, and FRAME_COST for each. */
  private size = 0;
  private over = false;
  private wake: (() => void) | undefined;

  constructor(readonly socket: WebSocket) {
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      const frame: string | Bytes = typeof data === "string" ? data : new Uint8Array(data);
      this.size += frame.length + FRAME_COST;
      if (this.flooded) this.giveUp();
      else this.waiting.push(frame);
      this.wake?.();
    };
    socket.onclose = socket.onerror = () => {
      this.over = true;
      this.wake?.();
    };
  }

  /** Throws CutError, and what the relay says before it closes. */
  async next(): Promise<Bytes> {
    const frame = await this.any();
    if (typeof frame !== "string") return frame;
    told(frame);
    throw badSeal("the relay speaks out of turn");
  }

  async told(type: string): Promise<Said> {
    const frame = await this.any();
    const said = typeof frame === "string" ? told(frame) : {};
    if (said.type !== type) throw new TrunklineError("bad_frame", "the relay says something else than was its turn to say");
    return said;
  }

  private async any(): Promise<string | Bytes> {
    while (this.waiting.length === 0) {
      if (this.flooded) throw new TrunklineError("too_large", "the host sends more than was acknowledged");
      if (this.over) throw new CutError("the connection was cut");
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
    const frame = this.waiting.shift()!;
    this.size -= frame.length + FRAME_COST;
    return frame;
  }

  private get flooded(): boolean {
    return this.size > MOST_WAITING;
  }

  /** What waits is of no use any more: nothing would open that follows it. */
  private giveUp(): void {
    this.waiting = [];
    this.socket.close();
  }
}

function told(frame: string): Said {
  const said = JSON.parse(frame) as Said;
  if (said.type === "error") throw refusal(said);
  return said;
}

export const refusal = ({ code, message }: Said): TrunklineError => new TrunklineError(String(code), String(message));

/** Messages of one connection, both ways. */
export class Wire {
  constructor(
    private readonly frames: Frames,
    private readonly sid: Bytes,
    private readonly channel: Channel,
    private header: Bytes,
  ) {}

  get ended(): boolean {
    return this.channel.ended;
  }

  /** From the message behind `opened` on. */
  pad(block: number): void {
    this.channel.pad(block);
  }

  /** What a message of either direction counts for. */
  cost(content: Uint8Array): number {
    return this.channel.cost(content);
  }

  send(kind: number, content: Uint8Array, last = false): void {
    if (this.frames.socket.readyState !== WebSocket.OPEN) return;
    for (const frame of this.channel.seal(kind, content, last)) {
      this.frames.socket.send(pack(this.sid, joined(this.header, frame)));
      this.header = new Uint8Array();
    }
  }

  say(value: Said, last = false): void {
    this.send(CONTROL, utf8(JSON.stringify(value)), last);
  }

  /** The next message. Throws `bad_seal`, and as `Frames.next`. */
  async next(): Promise<Message> {
    for (;;) {
      const message = this.channel.open(unpack(this.sid, await this.frames.next()));
      if (message !== undefined) return message;
    }
  }

  /** The next message, which is of CONTROL. */
  async hear(): Promise<Said> {
    const { kind, content } = await this.next();
    if (kind !== CONTROL) throw new TrunklineError("bad_frame", "the host's next word would be a control message");
    return JSON.parse(text(content)) as Said;
  }

  close(): void {
    this.frames.socket.close();
  }
}

/** The host's answer, over a relay. Throws as the relay refuses, `bad_seal` for another host, CutError. */
export async function reach(wanted: Wanted): Promise<{ wire: Wire; about: Said }> {
  await ready;
  const name = hostName(wanted.route);
  const socket = new WebSocket(`${wanted.relay.replace(/^http/, "ws")}/relay/v1/device/${name}`);
  const frames = new Frames(socket);
  try {
    const { challenge } = await frames.told("challenge");
    socket.send(JSON.stringify(wanted.proof(new URL(wanted.relay).host, name, fromBase64(challenge))));
    const sid = fromHex((await frames.told("opened")).sid);
    const opening = new Opening(wanted.identity, wanted.host, sid, utf8(JSON.stringify(wanted.about)));
    socket.send(pack(sid, opening.first));
    const { channel, about, header } = opening.answered(unpack(sid, await frames.next()));
    return { wire: new Wire(frames, sid, channel, header), about: JSON.parse(text(about)) as Said };
  } catch (error) {
    socket.close();
    throw error;
  }
}

/** The identity that a host tells of, and its number. Throws `bad_frame` for what can be none. */
export function identityIn({ identity, number = 0 }: Said): [identity: Bytes, number: number] {
  const key = /^[A-Za-z0-9+/]{43}=$/.test(identity) ? fromBase64(identity) : undefined;
  if (key !== undefined && Number.isSafeInteger(number) && number >= 0) return [key, number];
  throw new TrunklineError("bad_frame", "the host's identity is none");
}

/** A paired device's answer to a relay's challenge. */
export function deviceProof(route: Pair): Wanted["proof"] {
  return (relay, name, challenge) => {
    const zero = new Uint8Array(1);
    const signedText = joined(utf8("trunkline-relay-device"), zero, utf8(relay.toLowerCase()), zero, utf8(name), zero, challenge);
    return { type: "device", route: toBase64(route.public), signature: toBase64(signed(route, signedText)) };
  };
}
