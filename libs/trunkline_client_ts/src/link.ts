/** A connection that outlives its gateway: calls are repeated and subscriptions resumed by cursor after a break. */

import { Connection, type Address, type Frame, type Gap, type Hello } from "./connection.js";
import { ConnectionLostError, passes, TrunklineError } from "./errors.js";
import { EVENTS, MINTED, type KnownEvent, type Params, type Results, type Snapshot } from "./generated.js";
import { newId } from "./ids.js";
import { MOST_WAITING, Queue } from "./queue.js";

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;

/** An event of a type that this version does not know, as it came. */
export interface UnknownEvent {
  id: string;
  type: string;
  session: string;
  time: string;
  data: unknown;
  [more: string]: unknown;
}

/** What a watch tells. */
export type Notice =
  /** The subscription stands: whatever is caused from now on will be seen. Again after each break. */
  | { kind: "opened" }
  /** How things are at this place of the log. */
  | { kind: "snapshot"; snapshot: Snapshot }
  /** `cursor` stands behind the event. A later gateway may add fields, and members to any union: they are there as they came. */
  | { kind: "event"; event: KnownEvent; cursor: string | undefined }
  | { kind: "unknown"; event: UnknownEvent; cursor: string | undefined }
  /** Everybody who watches a session, if `presence` was asked for. */
  | { kind: "presence"; session: string; who: Record<string, unknown>[] }
  /** Events are missing, for a reason that the log names; what follows is complete again. */
  | { kind: "gap"; gap: Gap }
  /** The connection broke, or stands again. */
  | { kind: "broken"; mended: boolean };

export interface Wanted {
  /** Left out: every session. */
  session?: string;
  /** Where to begin without a cursor. */
  from?: "start" | "now" | "snapshot";
  /** Wins over `from`. */
  cursor?: string;
  patterns?: string[];
  deltas?: boolean;
  presence?: boolean;
}

export interface Options {
  /** The program's name. */
  name?: string;
  /** Milliseconds to wait for a gateway that is gone, and for one that was never there. */
  patience?: number;
  firstPatience?: number;
  /** Frames of a watch that may wait for its reader; beyond them it goes on from its cursor once they are read. */
  mostWaiting?: number;
}

export type Method = keyof Params;

type Given<M extends Method> = {} extends Params[M] ? [params?: Params[M], within?: number] : [params: Params[M], within?: number];

export class Link {
  private wanted: Promise<Connection> | undefined;
  private current: Connection | undefined;
  private ended = false;
  private met = false;
  private readonly name: string;
  private readonly patience: number;
  private readonly firstPatience: number;
  private readonly mostWaiting: number;

  /** `where` is asked again at each connection, if it is a function. */
  constructor(
    private readonly where: Address | (() => Address | Promise<Address>),
    { name = "typescript", patience = 120_000, firstPatience = 5_000, mostWaiting = MOST_WAITING }: Options = {},
  ) {
    this.name = name;
    this.patience = patience;
    this.firstPatience = firstPatience;
    this.mostWaiting = mostWaiting;
  }

  /** What the gateway said in `hello`. Connects, if it is not connected. */
  async server(): Promise<Hello> {
    return (await this.connected()).server;
  }

  /**
   * A method's payload; `within` is in milliseconds. After a break it is asked again: where an id makes that harmless, one is
   * minted. Rejects with the gateway's TrunklineError, `not_running` when no gateway comes back.
   */
  async call<M extends Method>(method: M, ...[params, within]: Given<M>): Promise<Results[M]> {
    const given = minted(method, { ...params });
    for (;;) {
      const connection = await this.connected();
      try {
        return (await connection.call(method, given, within)) as Results[M];
      } catch (error) {
        if (error instanceof ConnectionLostError) this.forget(connection);
        else if (!(error instanceof TrunklineError) || error.code !== "rate_limited" || error.retryAfter === undefined) throw error;
        else await delay(1000 * error.retryAfter);
      }
    }
  }

  /**
   * Everything behind `cursor` (or from `from`), in order and once, until the loop over it is left or the link is closed.
   * Throws the gateway's TrunklineError for a subscription that it refuses.
   */
  async *watch({ cursor, from = "snapshot", ...rest }: Wanted = {}): AsyncGenerator<Notice, void, undefined> {
    let brokenSince: number | undefined;
    while (!this.ended) {
      const queue = new Queue(this.mostWaiting);
      const connection = await this.connected();
      try {
        const opened = await connection.subscribe({ ...rest, ...(cursor === undefined ? { from } : { cursor }) }, queue);
        try {
          cursor = opened.cursor ?? cursor;
          if (brokenSince !== undefined) yield { kind: "broken", mended: true };
          brokenSince = undefined;
          yield { kind: "opened" };
          if (opened.gap !== undefined) yield { kind: "gap", gap: opened.gap };
          if (opened.snapshot !== undefined) yield { kind: "snapshot", snapshot: opened.snapshot };
          // The gap of the answer comes as a frame, too.
          let told = opened.gap !== undefined;
          for (;;) {
            const frame = await queue.next();
            if (frame === "full") break;
            if (frame === "lost") throw new ConnectionLostError("the gateway closed the connection");
            cursor = frame.cursor ?? cursor;
            if (frame.event === "gap" && told) told = false;
            else yield* noticesOf(frame);
          }
        } finally {
          connection.unsubscribe(opened.subscription);
        }
      } catch (error) {
        if (this.ended) return;
        if (error instanceof ConnectionLostError) {
          this.forget(connection);
          if (brokenSince === undefined) {
            brokenSince = Date.now();
            yield { kind: "broken", mended: false };
          }
        } else {
          if (!passes(error) || brokenSince === undefined || Date.now() - brokenSince > this.patience) throw error;
          await delay(FIRST_DELAY_MS);
        }
      }
    }
  }

  /** Ends the connection, every watch, and calls under way. */
  async close(): Promise<void> {
    this.ended = true;
    const wanted = this.wanted;
    this.wanted = this.current = undefined;
    await wanted?.then(
      (made) => made.close(),
      () => undefined,
    );
  }

  private async connected(): Promise<Connection> {
    if (this.ended) throw new TrunklineError("not_running", "this link was closed");
    const wanted = (this.wanted ??= this.connect(this.met ? this.patience : this.firstPatience));
    try {
      const made = await wanted;
      if (this.wanted === wanted) this.current = made;
      this.met = true;
      return made;
    } catch (error) {
      if (this.wanted === wanted) this.wanted = undefined;
      throw error;
    }
  }

  private forget(connection: Connection): void {
    if (this.current === connection) this.wanted = this.current = undefined;
    connection.close();
  }

  private async connect(patience: number): Promise<Connection> {
    const until = Date.now() + patience;
    for (let pause = FIRST_DELAY_MS; ; pause = Math.min(LONGEST_DELAY_MS, pause * 2)) {
      try {
        const connection = await Connection.open(await (typeof this.where === "function" ? this.where() : this.where), this.name);
        if (!this.ended) return connection;
        connection.close();
        throw new TrunklineError("not_running", "this link was closed");
      } catch (error) {
        if (!(error instanceof ConnectionLostError)) throw error;
        if (this.ended || Date.now() + pause > until) throw new TrunklineError("not_running", error.message);
      }
      await delay(pause);
    }
  }
}

function* noticesOf(frame: Frame): Generator<Notice, void, undefined> {
  if (frame.type === "presence") {
    yield { kind: "presence", session: String(frame.session), who: frame.who as Record<string, unknown>[] };
  } else if (frame.type === "event" && frame.event === "gap") {
    const gap = frame.payload as Gap;
    yield { kind: "gap", gap };
    if (gap.snapshot !== undefined) yield { kind: "snapshot", snapshot: gap.snapshot };
  } else if (frame.type === "event") {
    const { cursor, payload } = frame;
    if (EVENTS.has((payload as UnknownEvent).type)) yield { kind: "event", event: payload as KnownEvent, cursor };
    else yield { kind: "unknown", event: payload as UnknownEvent, cursor };
  }
}

function minted(method: string, params: Record<string, unknown>): object {
  const id = MINTED[method];
  return id === undefined || params[id[0]] !== undefined ? params : { ...params, [id[0]]: newId(id[1]) };
}

const delay = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
