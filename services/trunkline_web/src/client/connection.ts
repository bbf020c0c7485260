/**
 * The line to the gateway, for as long as the page lives: calls with answers, subscriptions that resume by cursor.
 *
 * A connection that is lost comes back by itself, after 1, 2, 4 … 30 seconds, and at once when the network does. Calls under
 * way fail with the code `closed`: whoever sends a command gives it an id, and may repeat it. What a connection is says
 * trunkline-client.
 */

import {
  Connection,
  ConnectionLostError,
  passes,
  Queue,
  TrunklineError,
  type Frame,
  type Method,
  type Params,
  type Results,
  type Socket,
} from "trunkline-client";
import { delayOf } from "./backoff";
import type { Gap, Hello, LogEvent, Opened, Presence } from "./protocol";

export type State =
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
  failed?(error: TrunklineError): void;
}

export type Maker = new (url: string) => Socket;

export interface Wanted {
  session?: string;
  /** The sessions of a team: its lead's, and those of its members. */
  team?: string;
  patterns?: string[];
  deltas?: boolean;
  presence?: boolean;
}

type Given<M extends Method> = {} extends Params[M] ? [params?: Params[M]] : [params: Params[M]];

const CLOSED = "closed";
/** Until a gateway that can't read the log yet is asked again. */
const AGAIN_MS = 500;
/** Until a connection that does not answer after a change of the network is given up. */
const PROBE_MS = 3_000;
/** Reasons to end a connection after which another one would end as well. */
const FATAL = new Set(["unauthorized", "revoked", "expired"]);

/** Whether a call failed because its connection was revoked meanwhile. */
export const isRevoked = (error: unknown): boolean =>
  isClosed(error) && (error as Error).cause instanceof Error && ((error as Error).cause as Error).message === "revoked";

/** Whether a call failed for want of a connection: it may have taken effect, and may be repeated. */
export const isClosed = (error: unknown): boolean => error instanceof TrunklineError && error.code === CLOSED;

export class Line {
  private connection: Connection | undefined;
  private token: string | undefined;
  private through: Maker | undefined;
  private readonly subscriptions = new Set<Subscription>();
  private failures = 0;
  /** Counts attempts to connect: what an earlier one brings is none of ours. */
  private dials = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private now: State = { state: "idle" };

  constructor(
    private readonly url: string,
    private readonly onState: (state: State) => void,
  ) {}

  /** Connects, with a token or with the cookie of a sign-in, and stays connected; by WebSockets of another kind, if one is given. */
  start(token?: string, through?: Maker): void {
    this.token = token;
    this.through = through;
    this.failures = 0;
    void this.dial();
  }

  /** Ends the connection for good. */
  stop(why = ""): void {
    clearTimeout(this.timer);
    this.dials++;
    this.set({ state: "signed_out", why });
    this.connection?.close();
  }

  /** The network has changed, or somebody is impatient: tries again now if it is waiting, and looks whether it still is what it seems. */
  retry(): void {
    if (this.now.state === "waiting") {
      this.failures = 0;
      void this.dial();
    } else if (this.now.state === "open" && this.connection !== undefined) void this.probe(this.connection);
  }

  /** A connection of a network that is gone says nothing, and nobody says that it is over. */
  private async probe(connection: Connection): Promise<void> {
    try {
      await connection.call("device.list", { limit: 1 }, PROBE_MS);
    } catch (error) {
      if (error instanceof TrunklineError && error.code === "timeout") connection.close();
    }
  }

  get hello(): Hello | undefined {
    return this.now.state === "open" ? this.now.hello : undefined;
  }

  /** Calls a method. Rejects with a TrunklineError: the gateway's own, or `closed`. */
  async call<M extends Method>(method: M, ...[params]: Given<M>): Promise<Results[M]> {
    return (await this.request(method, params)) as Results[M];
  }

  /** Calls a method whose name is not known before. Rejects as `call` does. */
  async request(method: string, params: object = {}, within?: number): Promise<unknown> {
    try {
      return await this.open().call(method, params, within);
    } catch (error) {
      throw error instanceof ConnectionLostError ? lost(error) : error;
    }
  }

  /** Follows the log from a snapshot on, over all connections to come, until `end()`. */
  follow(wanted: Wanted, listener: Listener): Subscription {
    const made = new Subscription(wanted, listener, () => this.subscriptions.delete(made));
    this.subscriptions.add(made);
    if (this.now.state === "open") void made.open(this.open());
    return made;
  }

  private open(): Connection {
    if (this.now.state !== "open" || this.connection === undefined) throw lost();
    return this.connection;
  }

  private async dial(): Promise<void> {
    clearTimeout(this.timer);
    const mine = ++this.dials;
    this.set({ state: "connecting", since: Date.now() });
    try {
      const made = await Connection.open({ url: this.url, token: this.token, WebSocket: this.through }, "web");
      if (mine !== this.dials) return made.close();
      this.connection = made;
      this.failures = 0;
      this.set({ state: "open", hello: made.server as unknown as Hello });
      for (const subscription of this.subscriptions) void subscription.open(made);
      const reason = await made.closed;
      if (mine === this.dials) this.wait(reason);
    } catch (error) {
      if (mine !== this.dials) return;
      if (error instanceof TrunklineError && !passes(error)) this.stop(error.message);
      else this.wait("");
    }
  }

  private wait(reason: string): void {
    if (FATAL.has(reason)) {
      this.set({ state: "signed_out", why: `the gateway ended the connection: ${reason}` });
      return;
    }
    const delay = delayOf(++this.failures);
    this.set({ state: "waiting", until: Date.now() + delay, why: reason });
    this.timer = setTimeout(() => void this.dial(), delay);
  }

  private set(state: State): void {
    this.now = state;
    this.onState(state);
  }
}

/** A subscription over all connections: what was had is never had again, what is missing is named. */
export class Subscription {
  private name: string | undefined;
  private connection: Connection | undefined;
  private cursor: string | undefined;
  private ended = false;

  constructor(
    private readonly wanted: Wanted,
    private readonly listener: Listener,
    private readonly forget: () => void,
  ) {}

  /** Follows on this connection, until that ends; once, however often it is told: who hears that the line is open may be quick. */
  async open(connection: Connection): Promise<void> {
    if (this.connection === connection) return;
    this.connection = connection;
    for (let again = true; again && !this.ended; ) {
      try {
        // Whoever reads too slowly goes on from the cursor.
        again = (await this.read(connection)) === "full";
      } catch (error) {
        if (!(error instanceof TrunklineError)) return;
        this.listener.failed?.(error);
        again = passes(error);
        if (again) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  end(): void {
    this.ended = true;
    this.forget();
    if (this.name !== undefined) this.connection?.unsubscribe(this.name);
  }

  private async read(connection: Connection): Promise<"full" | "lost" | undefined> {
    const queue = new Queue();
    const where = this.cursor === undefined ? { from: "snapshot" as const } : { cursor: this.cursor };
    const opened = (await connection.subscribe({ ...this.wanted, ...where }, queue)) as unknown as Opened;
    if (this.ended) {
      connection.unsubscribe(opened.subscription);
      return undefined;
    }
    this.name = opened.subscription;
    this.cursor = opened.cursor;
    this.listener.opened(opened);
    for (;;) {
      const frame = await queue.next();
      if (frame === "full" || frame === "lost") return frame;
      if (this.ended) return undefined;
      this.take(frame);
    }
  }

  private take(frame: Frame): void {
    this.cursor = frame.cursor ?? this.cursor;
    if (frame.type === "presence") this.listener.presence?.(String(frame.session), frame.who as Presence[]);
    else if (frame.event === "gap") this.onGap(frame.payload as Gap);
    else if (frame.type === "event") this.listener.event(frame.payload as LogEvent, frame.cursor);
  }

  private onGap(gap: Gap): void {
    // Without a snapshot it repeats what `opened` has told.
    if (gap.snapshot === undefined) return;
    this.cursor = gap.cursor ?? this.cursor;
    this.listener.gap?.(gap);
  }
}

const lost = (cause?: Error): TrunklineError =>
  Object.assign(new TrunklineError(CLOSED, "the connection was lost; it comes back by itself"), { cause });
