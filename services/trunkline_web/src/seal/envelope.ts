/** What a relay sees of a frame, as trunkline_seal/envelope.py has it. */

import { type Bytes, joined } from "./bytes";
import { badSeal } from "./channel";

const VERSION = 1;
export const SID_BYTES = 16;
const HEAD = 1 + SID_BYTES + 4;

export function pack(sid: Bytes, ct: Bytes): Bytes {
  const head = new Uint8Array(HEAD);
  head[0] = VERSION;
  head.set(sid, 1);
  new DataView(head.buffer).setUint32(1 + SID_BYTES, ct.length);
  return joined(head, ct);
}

/** The frame. Throws `bad_seal` for an envelope that is none, or another connection's. */
export function unpack(sid: Bytes, data: Bytes): Bytes {
  const whole = data.length >= HEAD && data[0] === VERSION;
  if (!whole || new DataView(data.buffer, data.byteOffset).getUint32(1 + SID_BYTES) !== data.length - HEAD) {
    throw badSeal("what came is no envelope");
  }
  if (!sid.every((byte, at) => data[at + 1] === byte)) throw badSeal("an envelope is another connection's");
  return data.slice(HEAD);
}
