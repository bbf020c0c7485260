/** Messages between device and host once both have their keys, as trunkline_seal/channel.py has them. */

import sodium, { type StateAddress } from "libsodium-wrappers";
import { TrunklineError } from "trunkline-client";
import { type Bytes, joined } from "./bytes";

export const TEXT = 0;
export const BINARY = 1;
export const CONTROL = 2;
export const PART_BYTES = 64 * 1024;
export const MAX_PAD = 64 * 1024;
export const MAX_MESSAGE = 64 * 1024 * 1024;
export const HEADER_BYTES = 24;
/** Bytes that a frame counts for besides its part of a message. */
export const FRAME_COST = 128;

/** What a message of `size` bytes counts for in the window of both ends, as trunkline_seal/channel.py has it. */
export function cost(size: number, pad: number): number {
  let whole = 1 + size;
  if (pad > 0) whole += pad - (whole % pad);
  return whole + Math.ceil(whole / PART_BYTES) * FRAME_COST;
}

export interface Message {
  kind: number;
  content: Bytes;
}

export const badSeal = (why: string): TrunklineError =>
  new TrunklineError("bad_seal", `the connection ends: ${why}; the next one resumes by cursor`);

/** What messages may cost that are on their way without being acknowledged. */
export const WINDOW = 512 * 1024;
/** What may wait to be taken: a host that keeps to the window never has more on its way. */
export const MOST_WAITING = cost(MAX_MESSAGE, 0) + WINDOW;

/** One direction, at its beginning. `header` goes before its first frame. */
export class Sender {
  pad = 0;
  readonly header: Bytes;
  private readonly state: StateAddress;

  constructor(
    key: Uint8Array,
    private readonly sid: Uint8Array,
  ) {
    const { state, header } = sodium.crypto_secretstream_xchacha20poly1305_init_push(key);
    this.state = state;
    this.header = new Uint8Array(header);
  }

  /** The frames of a message, all of which have to be sent, in order. `last`: nothing follows. */
  seal(kind: number, content: Uint8Array, last = false): Bytes[] {
    let whole: Uint8Array = joined(Uint8Array.of(kind), content);
    if (this.pad > 0) whole = sodium.pad(whole, this.pad);
    const { TAG_FINAL, TAG_PUSH, TAG_MESSAGE } = tags();
    const frames: Bytes[] = [];
    for (let at = 0; at < whole.length; at += PART_BYTES) {
      const tag = at + PART_BYTES < whole.length ? TAG_MESSAGE : last ? TAG_FINAL : TAG_PUSH;
      const part = whole.subarray(at, at + PART_BYTES);
      frames.push(new Uint8Array(sodium.crypto_secretstream_xchacha20poly1305_push(this.state, part, this.sid, tag)));
    }
    return frames;
  }
}

/** The other direction. */
export class Receiver {
  pad = 0;
  /** Whether the other end has said that nothing follows. */
  ended = false;
  private readonly state: StateAddress;
  private parts: Uint8Array[] = [];
  private size = 0;
  private broken = false;

  constructor(
    key: Uint8Array,
    header: Uint8Array,
    private readonly sid: Uint8Array,
  ) {
    this.state = sodium.crypto_secretstream_xchacha20poly1305_init_pull(header, key);
  }

  /** The message that this frame completes; undefined while parts are missing. Throws `bad_seal`, and then for everything after it. */
  open(frame: Uint8Array): Message | undefined {
    if (this.broken || this.ended) throw badSeal("nothing comes after a frame that did not open, or after the last one");
    this.broken = true;
    const whole = this.joined(frame);
    this.broken = false;
    if (whole === undefined) return undefined;
    const kind = whole[0];
    if (kind !== TEXT && kind !== BINARY && kind !== CONTROL) {
      this.broken = true;
      throw badSeal("a message is of no known kind");
    }
    return { kind, content: new Uint8Array(whole.subarray(1)) };
  }

  private joined(frame: Uint8Array): Uint8Array | undefined {
    const { message, tag } = pulled(this.state, frame, this.sid);
    const { TAG_FINAL, TAG_MESSAGE } = tags();
    // Many tiny ones cost far more memory than they have bytes.
    if (tag === TAG_MESSAGE && message.length !== PART_BYTES) throw badSeal("a part is not full, and not the last");
    this.parts.push(message);
    this.size += message.length;
    if (this.size > MAX_MESSAGE) throw badSeal("a message is too large");
    if (tag === TAG_MESSAGE) return undefined;
    this.ended = tag === TAG_FINAL;
    const whole = joined(...this.parts);
    this.parts = [];
    this.size = 0;
    if (this.pad === 0) return whole;
    try {
      return sodium.unpad(whole, this.pad);
    } catch {
      throw badSeal("a message is not padded as was agreed");
    }
  }
}

function pulled(state: StateAddress, frame: Uint8Array, sid: Uint8Array): { message: Uint8Array; tag: number } {
  try {
    const opened = sodium.crypto_secretstream_xchacha20poly1305_pull(state, frame, sid);
    if (opened) return opened;
  } catch {
    // too short for any frame
  }
  throw badSeal("a frame was changed, repeated, left out or is another connection's");
}

const tags = () => ({
  TAG_MESSAGE: sodium.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE,
  TAG_PUSH: sodium.crypto_secretstream_xchacha20poly1305_TAG_PUSH,
  TAG_FINAL: sodium.crypto_secretstream_xchacha20poly1305_TAG_FINAL,
});

/** Both directions. */
export class Channel {
  constructor(
    private readonly sender: Sender,
    private readonly receiver: Receiver,
  ) {}

  seal(kind: number, content: Uint8Array, last = false): Bytes[] {
    return this.sender.seal(kind, content, last);
  }

  open(frame: Uint8Array): Message | undefined {
    return this.receiver.open(frame);
  }

  get ended(): boolean {
    return this.receiver.ended;
  }

  /** What a message of either direction counts for. */
  cost(content: Uint8Array): number {
    return cost(content.length, this.sender.pad);
  }

  /** From now on messages of both ends are padded to a multiple of so many bytes. */
  pad(block: number): void {
    this.sender.pad = this.receiver.pad = block;
  }
}
