/** The device's side of how both ends come to keys that nobody else has, as trunkline_seal/handshake.py has it. */

import sodium from "libsodium-wrappers";
import { type Bytes, joined } from "./bytes";
import { badSeal, Channel, CONTROL, HEADER_BYTES, Receiver, Sender } from "./channel";
import { digest, identityOf, KEY_BYTES, type Pair, randomBytes } from "./keys";

export class Opening {
  /** The device's first message. */
  readonly first: Bytes;

  /** `host`: its public identity. `fresh` and `first` are for tests against known answers. */
  constructor(
    private readonly identity: Pair,
    private readonly host: Bytes,
    private readonly sid: Bytes,
    about: Uint8Array,
    private readonly fresh: Pair = identityOf(randomBytes(KEY_BYTES)),
    first?: Bytes,
  ) {
    this.first = first ?? joined(fresh.public, sodium.crypto_box_seal(joined(identity.public, about), host));
  }

  /** What the host answered. `header` goes before the device's first frame. Throws `bad_seal` for a host that has not the key it should have. */
  answered(second: Uint8Array): { channel: Channel; about: Bytes; header: Bytes } {
    if (second.length < KEY_BYTES + HEADER_BYTES) throw badSeal("the host's answer is too short");
    const theirs = second.slice(0, KEY_BYTES);
    const header = second.slice(KEY_BYTES, KEY_BYTES + HEADER_BYTES);
    const { up, down } = this.keys(theirs);
    const sender = new Sender(up, this.sid);
    const channel = new Channel(sender, new Receiver(down, header, this.sid));
    const said = channel.open(second.slice(KEY_BYTES + HEADER_BYTES));
    if (said === undefined || said.kind !== CONTROL) throw badSeal("the host's answer has no first message");
    return { channel, about: said.content, header: sender.header };
  }

  /** Of both directions, from the host's fresh key. */
  keys(theirs: Bytes): { up: Bytes; down: Bytes } {
    const made = [
      pair(this.identity, this.host),
      pair(this.fresh, theirs),
      pair(this.fresh, this.host),
      pair(this.identity, theirs),
    ];
    const transcript = digest("trunkline-seal-1", [this.sid, this.host, this.identity.public, theirs, this.first]);
    return {
      up: digest("up", made.map(({ sharedTx }) => sharedTx), 32, transcript),
      down: digest("down", made.map(({ sharedRx }) => sharedRx), 32, transcript),
    };
  }
}

function pair(mine: Pair, theirs: Bytes) {
  try {
    return sodium.crypto_kx_client_session_keys(mine.public, mine.secret, theirs);
  } catch {
    throw badSeal("the host's key is none");
  }
}
