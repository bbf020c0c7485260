/** A WebSocket of the host's gateway, sealed: in a window both ways, until one of the ends has enough. */

import { TrunklineError } from "trunkline-client";
import { fromBase64, text, toBase64, utf8 } from "./bytes";
import { BINARY, CONTROL, MAX_PAD, MOST_WAITING, TEXT, WINDOW } from "./channel";
import { identityOf, ready, routeOf } from "./keys";
import { learn, load, vouch } from "./record";
import { deviceProof, identityIn, reach, refusal, type Said, type Wire } from "./wire";

/** After these the next try may do better; all others are the host's or the relay's last word. */
const PASSING = new Set(["host_away", "rate_limited", "timeout", "not_running", "log_unavailable", "bad_seal", "bad_frame", "too_large"]);

export interface Listener {
  opened(): void;
  /** `size`, what it costs, is to be given to `taken` once the message was. */
  message(data: string | Uint8Array<ArrayBuffer>, size: number): void;
  /** Once, at the end. `refused`: another try would end as well. */
  closed(code: number, reason: string, refused?: { code: string; message: string }): void;
}

export class SealedSocket {
  private wire: Wire | undefined;
  private device = "";
  private waiting: { kind: number; content: Uint8Array }[] = [];
  private sent = 0;
  private acked = 0;
  private given = 0;
  private took = 0;
  private ended = false;

  constructor(
    path: string,
    private readonly listener: Listener,
  ) {
    void this.run(path);
  }

  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.waiting.push(typeof data === "string" ? { kind: TEXT, content: utf8(data) } : { kind: BINARY, content: data });
    this.flush();
  }

  /** What costs so much more has been taken by whoever listens. */
  taken(size: number): void {
    this.took += size;
    if (!this.ended) this.wire?.say({ ack: this.took });
  }

  close(code = 1000, reason = ""): void {
    if (this.ended) return;
    this.wire?.say({ closed: { code, reason } }, true);
    this.end(code, reason);
  }

  private flush(): void {
    while (this.wire !== undefined && !this.ended && this.sent - this.acked < WINDOW) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.sent += this.wire.cost(next.content);
      this.wire.send(next.kind, next.content);
    }
  }

  private async run(path: string): Promise<void> {
    try {
      const { wire, device } = await opened(path);
      if (this.ended) return wire.close();
      this.device = device;
      this.wire = wire;
      this.listener.opened();
      this.flush();
      while (!wire.ended && !this.ended) {
        const { kind, content } = await wire.next();
        if (this.ended) return;
        if (kind === CONTROL) await this.hear(JSON.parse(text(content)) as Said);
        else this.give(kind === TEXT ? text(content) : content, wire.cost(content));
      }
      this.end(1006, "");
    } catch (error) {
      const known = error instanceof TrunklineError;
      const lasting = known && !PASSING.has(error.code);
      this.end(1006, known ? error.message : "", lasting ? { code: error.code, message: error.message } : undefined);
    }
  }

  private give(data: string | Uint8Array<ArrayBuffer>, size: number): void {
    this.given += size;
    if (this.given - this.took > MOST_WAITING) throw new TrunklineError("too_large", "the host sends more than was acknowledged");
    this.listener.message(data, size);
  }

  private async hear(said: Said): Promise<void> {
    if (said.ack !== undefined) {
      if (!(said.ack >= this.acked && said.ack <= this.sent)) throw new TrunklineError("bad_frame", "the host acknowledges what was never sent to it");
      this.acked = said.ack;
      this.flush();
    }
    if (said.identity !== undefined) await learn(this.device, ...identityIn(said));
    if (said.failed !== undefined) throw refusal(said.failed);
    if (said.closed !== undefined) this.end(said.closed.code ?? 1000, said.closed.reason ?? "");
  }

  private end(code: number, reason: string, refused?: { code: string; message: string }): void {
    if (this.ended) return;
    this.ended = true;
    this.waiting = [];
    this.wire?.close();
    this.listener.closed(code, reason, refused);
  }
}

/** The path, opened at the host that this browser is paired with, and which device it is there. */
async function opened(path: string): Promise<{ wire: Wire; device: string }> {
  const paired = await load();
  if (paired === undefined) throw new TrunklineError("unpaired", "this browser is paired with no host any more: pair it again");
  const { relay, route, token } = paired;
  await ready;
  const mine = routeOf(paired.seed);
  const { wire, about } = await reach({
    relay,
    route,
    host: paired.identity,
    identity: identityOf(paired.secret),
    about: { route: toBase64(mine.public) },
    proof: deviceProof(mine),
  });
  try {
    await learn(paired.device, ...identityIn(about));
    if (about.app) await vouch(fromBase64(about.app));
    const pad = Math.max(paired.pad ?? 0, wantedPad(about.pad));
    wire.say({ open: path, token, pad });
    const said = await wire.hear();
    if (said.failed !== undefined) throw refusal(said.failed);
    if (said.opened !== true) throw new TrunklineError("bad_frame", "the host says neither yes nor no");
    wire.pad(pad);
    return { wire, device: paired.device };
  } catch (error) {
    wire.close();
    throw error;
  }
}

function wantedPad(pad: unknown = 0): number {
  if (typeof pad === "number" && Number.isInteger(pad) && pad >= 0 && pad <= MAX_PAD) return pad;
  throw new TrunklineError("bad_frame", "the host wants messages padded as none can be");
}
