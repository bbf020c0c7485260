/** Where what is said is sealed and opened: beside the page, whose thread does nothing of it. */

import { TrunklineError } from "trunkline-client";
import { fingerprint, ready } from "./keys";
import { parseLink } from "./link";
import { pair } from "./pairing";
import { SealedSocket } from "./socket";

/** To the worker. A socket is known by its number. */
export type Order =
  | { do: "open"; id: number; path: string }
  | { do: "send"; id: number; data: string | Uint8Array<ArrayBuffer> }
  | { do: "taken"; id: number; size: number }
  | { do: "close"; id: number }
  | { do: "look"; url: string }
  | { do: "pair"; url: string; name: string; pad: number };

/** From it. */
export type Report =
  | { say: "opened"; id: number }
  | { say: "message"; id: number; data: string | Uint8Array<ArrayBuffer>; size: number }
  | { say: "closed"; id: number; code: number; reason: string; refused?: { code: string; message: string } }
  | { say: "host"; fingerprint: string; app: Uint8Array<ArrayBuffer> }
  | { say: "code"; code: string; host: string }
  | { say: "paired" }
  | { say: "failed"; code: string; message: string };

const sockets = new Map<number, SealedSocket>();
const report = (what: Report): void => self.postMessage(what);

self.onmessage = ({ data: order }: MessageEvent<Order>) => {
  switch (order.do) {
    case "open":
      open(order.id, order.path);
      break;
    case "send":
      sockets.get(order.id)?.send(order.data);
      break;
    case "taken":
      sockets.get(order.id)?.taken(order.size);
      break;
    case "close":
      sockets.get(order.id)?.close();
      break;
    case "look":
      void failing(async () => {
        await ready;
        const { identity, app } = parseLink(order.url);
        report({ say: "host", fingerprint: fingerprint(identity), app });
      });
      break;
    case "pair":
      void failing(async () => {
        await pair(parseLink(order.url), order.name, order.pad, (code, host) => report({ say: "code", code, host }));
        report({ say: "paired" });
      });
      break;
  }
};

function open(id: number, path: string): void {
  const made = new SealedSocket(path, {
    opened: () => report({ say: "opened", id }),
    message: (data, size) => report({ say: "message", id, data, size }),
    closed(code, reason, refused) {
      sockets.delete(id);
      report({ say: "closed", id, code, reason, refused });
    },
  });
  sockets.set(id, made);
}

async function failing(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const code = error instanceof TrunklineError ? error.code : "internal";
    report({ say: "failed", code, message: error instanceof Error ? error.message : String(error) });
  }
}
