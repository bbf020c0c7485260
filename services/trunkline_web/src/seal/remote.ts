/** WebSockets of the host's gateway for the page, as the browser's own are: the worker does what they need. */

import type { Order, Report } from "./worker";

/** What messages cost after which the worker is told that they were taken. */
const TELL_EVERY = 64 * 1024;

export const newWorker = (): Worker => new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });

const sockets = new Map<number, RelaySocket>();
let worker: Worker | undefined;
let numbered = 0;

function order(what: Order): void {
  if (worker === undefined) {
    worker = newWorker();
    worker.onmessage = ({ data }: MessageEvent<Report>) => {
      if ("id" in data) sockets.get(data.id)?.hear(data);
    };
    worker.onerror = () => {
      for (const [id, socket] of sockets) socket.hear({ say: "closed", id, code: 1006, reason: "the worker ended" });
      worker = undefined;
    };
  }
  worker.postMessage(what);
}

type Handler = ((event: any) => void) | null;

export class RelaySocket extends EventTarget {
  readyState: number = WebSocket.CONNECTING;
  binaryType = "arraybuffer";
  onopen: Handler = null;
  onmessage: Handler = null;
  onclose: Handler = null;
  onerror: Handler = null;
  private readonly id = ++numbered;
  private untold = 0;

  /** Only the path of `url` matters. */
  constructor(url: string) {
    super();
    sockets.set(this.id, this);
    order({ do: "open", id: this.id, path: new URL(url).pathname });
  }

  send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.readyState === WebSocket.OPEN) order({ do: "send", id: this.id, data });
  }

  close(): void {
    if (this.readyState < WebSocket.CLOSING) {
      this.readyState = WebSocket.CLOSING;
      order({ do: "close", id: this.id });
    }
  }

  /** What the worker tells of this socket. */
  hear(said: Extract<Report, { id: number }>): void {
    if (said.say === "opened") {
      if (this.readyState !== WebSocket.CONNECTING) return;
      this.readyState = WebSocket.OPEN;
      this.tell(new Event("open"));
    } else if (said.say === "message") {
      const data = typeof said.data === "string" ? said.data : said.data.buffer;
      this.tell(new MessageEvent("message", { data }));
      this.untold += said.size;
      if (this.untold < TELL_EVERY) return;
      order({ do: "taken", id: this.id, size: this.untold });
      this.untold = 0;
    } else {
      sockets.delete(this.id);
      this.readyState = WebSocket.CLOSED;
      const { code, reason, refused } = said;
      this.tell(Object.assign(new Event("close"), { code, reason, refused }));
    }
  }

  private tell(event: Event): void {
    this[`on${event.type}` as "onopen"]?.(event);
    this.dispatchEvent(event);
  }
}
