/**
 * One WebSocket to the gateway, for as long as the page lives: calls with answers, subscriptions that resume by cursor.
 *
 * A connection that is lost comes back by itself, after 1, 2, 4 … 30 seconds, and at once when the network does. Calls under
 * way fail with the code `closed`: whoever sends a command gives it an id, and may repeat it.
 */

import { delayOf } from "./backoff";
import { GatewayError, type Gap, type Hello, type LogEvent, type Opened, type Presence } from "./protocol";

export type Link =
  | { state: "connecting"; since: number }
  | { state: "open"; hello: Hello }
  | { state: "waiting"; until: number; why: string }
  | { state: "signed_out"; why: string }
  | { state: "idle" };

/** What a subscription tells. `opened` comes once for each connection, before anything else of it. */
export interface Listener {
  opened(opened: Opened): void;
  event(event: LogEvent, cursor: string | undefined): void;
  gap?(gap: Gap): void;
  presence?(session: string, who: Presence[]): void;
  failed?(error: GatewayError): void;
}

export interface Wanted {
  session?: string;
  patterns?: string[];
  deltas?: boolean;
  presence?: boolean;
}

interface Call {
  resolve(payload: unknown): void;
  reject(error: GatewayError): void;
}

const CLOSED = { code: "closed", message: "the connection was lost; it comes back by itself" };
const FATAL = new Set(["unauthorized", "revoked", "expired"]);

export class Connection {
  private socket: WebSocket | undefined;
  private token: string | undefined;
  private readonly calls = new Map<string, Call>();
  private readonly subscriptions = new Set<Subscription>();
  private numbered = 0;
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private link: Link = { state: "idle" };

  constructor(
    private readonly url: string,
    private readonly onLink: (link: Link) => void,
  ) {}

  /** Connects, with a token or with the cookie of a sign-in, and stays connected. */
  start(token?: string): void {
    this.token = token;
    this.failures = 0;
    this.dial();
  }

  /** Ends the connection for good. */
  stop(why = ""): void {
    clearTimeout(this.timer);
    this.set({ state: "signed_out", why });
    this.socket?.close();
  }

  /** Tries again now, if it is waiting: the network has changed, or somebody is impatient. */
  retry(): void {
    if (this.link.state === "waiting") {
      this.failures = 0;
      this.dial();
    }
  }

  get hello(): Hello | undefined {
    return this.link.state === "open" ? this.link.hello : undefined;
  }

  /** Calls a method. Rejects with a GatewayError: the gateway's own, or `closed`. */
  call<T>(method: string, params: object = {}): Promise<T> {
    if (this.link.state !== "open") return Promise.reject(new GatewayError(CLOSED));
    return this.send<T>(method, params);
  }

  /** Follows the log from a snapshot on, over all connections to come, until `end()`. */
  follow(wanted: Wanted, listener: Listener): Subscription {
    const made = new Subscription(this, wanted, listener);
    this.subscriptions.add(made);
    if (this.link.state === "open") void made.open();
    return made;
  }

  forget(subscription: Subscription): void {
    this.subscriptions.delete(subscription);
  }

  private send<T>(method: string, params: object): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const id = String(++this.numbered);
      this.calls.set(id, { resolve: resolve as (payload: unknown) => void, reject });
      this.socket?.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  private dial(): void {
    clearTimeout(this.timer);
    this.set({ state: "connecting", since: Date.now() });
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => void this.greet(socket);
    socket.onmessage = ({ data }) => socket === this.socket && this.take(JSON.parse(String(data)));
    socket.onclose = ({ reason }) => socket === this.socket && this.lost(reason);
  }

  private async greet(socket: WebSocket): Promise<void> {
    try {
      const hello = await this.send<Hello>("hello", { protocol: 1, client: "web", token: this.token });
      if (socket !== this.socket) return;
      this.failures = 0;
      this.set({ state: "open", hello });
      for (const subscription of this.subscriptions) void subscription.open();
    } catch (error) {
      if (error instanceof GatewayError && error.code !== CLOSED.code) this.stop(error.message);
    }
  }

  private lost(reason: string): void {
    clearTimeout(this.silence);
    for (const call of this.calls.values()) call.reject(new GatewayError(CLOSED));
    this.calls.clear();
    for (const subscription of this.subscriptions) subscription.name = undefined;
    if (this.link.state === "signed_out") return;
    if (FATAL.has(reason)) {
      this.set({ state: "signed_out", why: `the gateway ended the connection: ${reason}` });
      return;
    }
    const delay = delayOf(++this.failures);
    this.set({ state: "waiting", until: Date.now() + delay, why: reason });
    this.timer = setTimeout(() => this.dial(), delay);
  }

  private take(frame: Record<string, any>): void {
    this.heard();
    if (frame.type === "res") {
      const call = this.calls.get(String(frame.id));
      this.calls.delete(String(frame.id));
      if (frame.ok) call?.resolve(frame.payload);
      else call?.reject(new GatewayError(frame.error));
    } else if (frame.type === "heartbeat") {
      for (const one of this.subscriptions) {
        if (one.name !== undefined) one.moved(frame.cursors?.[one.name] ?? frame.cursor);
      }
    } else {
      for (const one of this.subscriptions) if (one.name === frame.subscription) one.take(frame);
    }
  }

  /** A gateway that says nothing for as long as it would drop us for is gone, whatever the socket thinks. */
  private heard(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.socket?.close(), 1000 * (this.hello?.silent_s ?? 45));
  }

  private set(link: Link): void {
    this.link = link;
    this.onLink(link);
  }
}

/** A subscription over all connections: what was had is never had again, what is missing is named. */
export class Subscription {
  name: string | undefined;
  private cursor: string | undefined;
  private ended = false;

  constructor(
    private readonly connection: Connection,
    private readonly wanted: Wanted,
    private readonly listener: Listener,
  ) {}

  /** Opens it on the connection that there is now. */
  async open(): Promise<void> {
    try {
      const where = this.cursor === undefined ? { from: "snapshot" } : { cursor: this.cursor };
      const opened = await this.connection.call<Opened>("subscribe", { ...this.wanted, ...where });
      if (this.ended) {
        void this.connection.call("unsubscribe", { subscription: opened.subscription }).catch(() => undefined);
        return;
      }
      this.name = opened.subscription;
      this.cursor = opened.cursor;
      this.listener.opened(opened);
    } catch (error) {
      if (error instanceof GatewayError && error.code !== CLOSED.code) this.listener.failed?.(error);
    }
  }

  take(frame: Record<string, any>): void {
    this.moved(frame.cursor);
    if (frame.type === "presence") this.listener.presence?.(frame.session, frame.who);
    else if (frame.event === "gap") this.onGap(frame.payload);
    else if (frame.type === "event") this.listener.event(frame.payload, frame.cursor);
  }

  moved(cursor: string | undefined): void {
    this.cursor = cursor ?? this.cursor;
  }

  end(): void {
    this.ended = true;
    this.connection.forget(this);
    if (this.name !== undefined) {
      void this.connection.call("unsubscribe", { subscription: this.name }).catch(() => undefined);
    }
  }

  private onGap(gap: Gap): void {
    // Without a snapshot it repeats what `opened` has told.
    if (gap.snapshot === undefined) return;
    this.moved(gap.cursor);
    this.listener.gap?.(gap);
  }
}
