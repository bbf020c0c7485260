/** One WebSocket to a gateway: calls with their answers, and frames by subscription. Nothing here reconnects. */

import { ConnectionLostError, TrunklineError, errorOf } from "./errors.js";
import type { ErrorInfo, Snapshot, Subscribe } from "./generated.js";
import type { Queue } from "./queue.js";

export const PROTOCOL = 1;
const CONNECT_MS = 10_000;
export const CALL_MS = 60_000;
const SILENT_S = 45;

/**
 * As much of a WebSocket as is used: the browser's, Node's, or that of the package `ws`. The `close` event of one of another kind
 * may say `refused`: why no other try would do better.
 */
export interface Socket {
  send(text: string): void;
  close(): void;
  addEventListener(type: any, listener: (event: any) => void): void;
}

export interface Address {
  /** `http://host:port` or `https://…`; also `ws+unix:/path:` with the package `ws`. */
  url: string;
  /** Left out where a cookie or the unix socket says who one is. */
  token?: string | undefined;
  /** For Node before 22, which has no WebSocket of its own. */
  WebSocket?: (new (url: string) => Socket) | undefined;
}

/** What is said in answer to `hello`; more than these. */
export interface Hello {
  protocol: number;
  version: string;
  host: string;
  actor: string;
  role: "viewer" | "participant" | "approver" | "owner";
  methods: string[];
  silent_s?: number;
  [more: string]: unknown;
}

export interface Gap {
  reason: string;
  cursor?: string;
  snapshot?: Snapshot;
  [more: string]: unknown;
}

/** The answer to `subscribe`. */
export interface Opened {
  subscription: string;
  cursor?: string;
  snapshot?: Snapshot;
  gap?: Gap;
}

/** What a gateway sends. */
export interface Frame {
  type: string;
  id?: string | number;
  ok?: boolean;
  payload?: unknown;
  error?: ErrorInfo;
  subscription?: string;
  event?: string;
  cursor?: string;
  cursors?: Record<string, string>;
  [more: string]: unknown;
}

interface Call {
  resolve(payload: unknown): void;
  reject(error: Error): void;
  queue: Queue | undefined;
}

export class Connection {
  server!: Hello;
  /** Why it ended, once it has. */
  readonly closed: Promise<string>;
  private tellClosed!: (reason: string) => void;
  private readonly calls = new Map<string, Call>();
  private readonly queues = new Map<string, Queue>();
  private numbered = 0;
  private ended: string | undefined;
  private heardAt = 0;
  private silence: ReturnType<typeof setTimeout> | undefined;

  private constructor(private readonly socket: Socket) {
    this.closed = new Promise((resolve) => (this.tellClosed = resolve));
    socket.addEventListener("message", ({ data }) => this.read(String(data)));
    socket.addEventListener("error", () => this.end("the connection broke"));
    socket.addEventListener("close", ({ reason }) => this.end(reason || "the gateway closed the connection"));
  }

  /** Connects and says hello as the program `name`. Rejects with TrunklineError, or ConnectionLostError if nobody listens. */
  static async open(address: Address, name: string): Promise<Connection> {
    const Maker = address.WebSocket ?? (globalThis as { WebSocket?: new (url: string) => Socket }).WebSocket;
    if (Maker === undefined) {
      throw new TrunklineError("unsupported", "there is no WebSocket here: pass that of the package `ws` as `WebSocket`");
    }
    const connection = new Connection(new Maker(`${address.url.replace(/^http/, "ws")}/ws`));
    try {
      await connection.opened();
      const params = { protocol: PROTOCOL, client: name, token: address.token };
      connection.server = (await connection.call("hello", params, CONNECT_MS)) as Hello;
    } catch (error) {
      connection.close();
      throw error;
    }
    connection.heard();
    connection.listen();
    return connection;
  }

  /** A method's payload. Rejects with TrunklineError (`timeout` after `within` milliseconds) or ConnectionLostError. */
  call(method: string, params: object = {}, within: number = CALL_MS): Promise<unknown> {
    return this.ask(method, params, within, undefined);
  }

  /** Subscribes; from the answer on `queue` has what comes, heartbeats too. */
  async subscribe(params: Partial<Subscribe>, queue: Queue): Promise<Opened> {
    return (await this.ask("subscribe", params, CALL_MS, queue)) as Opened;
  }

  /** Ends a subscription, if it is still there. */
  unsubscribe(subscription: string): void {
    if (this.ended !== undefined) return;
    this.queues.delete(subscription);
    this.call("unsubscribe", { subscription }).catch(() => undefined);
  }

  close(): void {
    this.end("closed");
    this.socket.close();
  }

  private ask(method: string, params: object, within: number, queue: Queue | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.ended !== undefined) return reject(new ConnectionLostError(this.ended));
      const id = String(++this.numbered);
      const done = (): void => {
        clearTimeout(timer);
        this.calls.delete(id);
      };
      const timer = setTimeout(() => {
        done();
        const words = `the gateway did not answer \`${method}\` within ${within / 1000} s; it may still take effect`;
        reject(new TrunklineError("timeout", words));
      }, within);
      this.calls.set(id, {
        resolve: (payload) => (done(), resolve(payload)),
        reject: (error) => (done(), reject(error)),
        queue,
      });
      this.socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  private opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      const lost = (event?: { refused?: ErrorInfo }): void =>
        reject(event?.refused ? errorOf(event.refused) : new ConnectionLostError("no gateway answers"));
      const timer = setTimeout(lost, CONNECT_MS);
      for (const type of ["close", "error"]) this.socket.addEventListener(type, (event) => (clearTimeout(timer), lost(event)));
      this.socket.addEventListener("open", () => (clearTimeout(timer), resolve()));
    });
  }

  private read(text: string): void {
    this.heard();
    let value: Frame | Frame[];
    try {
      value = JSON.parse(text) as Frame | Frame[];
    } catch {
      return this.close();
    }
    const frames = Array.isArray(value) ? value : [value];
    for (const frame of frames) this.take(frame, text.length / frames.length);
  }

  private take(frame: Frame, size: number): void {
    if (frame.type === "res") {
      const call = this.calls.get(String(frame.id));
      if (call === undefined) return this.late(frame);
      if (frame.ok !== true) return call.reject(errorOf(frame.error));
      // Events may follow in the same message: the queue has to be there before the caller hears of it.
      if (call.queue !== undefined) this.queues.set((frame.payload as Opened).subscription, call.queue);
      call.resolve(frame.payload);
    } else if (frame.type === "heartbeat") {
      for (const [name, queue] of this.queues) {
        const cursor = frame.cursors?.[name] ?? (this.queues.size === 1 ? frame.cursor : undefined);
        if (cursor !== undefined) this.offer(name, queue, { type: "heartbeat", cursor }, 0);
      }
    } else {
      const queue = this.queues.get(frame.subscription ?? "");
      if (queue !== undefined) this.offer(frame.subscription!, queue, frame, size);
    }
  }

  /** Nobody waits for the answer any more: a subscription would go on unread. */
  private late(frame: Frame): void {
    const subscription = (frame.payload as Partial<Opened> | null | undefined)?.subscription;
    if (frame.ok === true && subscription !== undefined && !this.queues.has(subscription)) this.unsubscribe(subscription);
  }

  private offer(subscription: string, queue: Queue, frame: Frame, size: number): void {
    if (!queue.push(frame, size)) this.unsubscribe(subscription);
  }

  /** A gateway that says nothing for as long as it would drop us for is gone, whatever the socket thinks. */
  private heard(): void {
    this.heardAt = Date.now();
  }

  /** Looks again once it would have been silent for too long: a timer for each message would cost more than the message. */
  private listen(): void {
    const left = this.heardAt + 1000 * (this.server.silent_s ?? SILENT_S) - Date.now();
    if (left <= 0) this.close();
    else this.silence = setTimeout(() => this.listen(), left);
  }

  private end(reason: string): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    clearTimeout(this.silence);
    for (const call of [...this.calls.values()]) call.reject(new ConnectionLostError(reason));
    for (const queue of this.queues.values()) queue.stop("lost");
    this.queues.clear();
    this.tellClosed(reason);
  }
}
