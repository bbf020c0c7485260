/** A fake gateway: it speaks the protocol to fake WebSockets, about one session whose log is in memory. */

export const SESSION = `ses_${"1".repeat(32)}`;
const LATENCY_MS = 5;

interface Fact {
  id: string;
  type: string;
  session: string;
  time: string;
  v: number;
  seq: number;
  epoch: number;
  item?: string;
  data: object;
}

interface Request {
  id: string;
  method: string;
  params: Record<string, any>;
}

class Socket {
  readonly listeners = new Map<string, ((event: any) => void)[]>();
  /** What is on its way to the client. */
  out: object[] = [];
  subscription: string | undefined;
  open = false;
  private flushing = false;

  constructor(private readonly gateway: Gateway) {
    setTimeout(() => (gateway.up ? gateway.accept(this) : this.end("refused")), LATENCY_MS);
  }

  addEventListener(type: string, listener: (event: any) => void): void {
    this.listeners.set(type, [...(this.listeners.get(type) ?? []), listener]);
  }

  send(text: string): void {
    setTimeout(() => this.open && this.gateway.hear(this, JSON.parse(text)), LATENCY_MS);
  }

  close(): void {
    this.end("");
  }

  say(frame: object): void {
    this.out.push(frame);
    if (this.flushing) return;
    this.flushing = true;
    setTimeout(() => {
      this.flushing = false;
      const frames = this.out.splice(0);
      if (this.open && frames.length > 0) this.tell("message", { data: JSON.stringify(frames.length > 1 ? frames : frames[0]) });
    }, LATENCY_MS);
  }

  /** The connection breaks: of what is on its way only the first `arrives` frames come. */
  cut(arrives: number): void {
    for (const frame of this.out.splice(0).slice(0, arrives)) this.tell("message", { data: JSON.stringify(frame) });
    this.end("");
  }

  tell(type: string, event: object): void {
    for (const listener of this.listeners.get(type) ?? []) listener(event);
  }

  end(reason: string): void {
    const was = this.open;
    this.open = false;
    this.gateway.sockets.delete(this);
    if (was || reason) this.tell("close", { reason: "" });
  }
}

export class Gateway {
  readonly sockets = new Set<Socket>();
  up = true;
  facts: Fact[] = [];
  /** The message that is being written. */
  writing: { item: string; text: string } | undefined;
  /** How the next subscriptions by cursor are answered. */
  readonly answers: ("log_unavailable" | "too_far")[] = [];
  private log = 1;
  private numbered = 0;

  readonly WebSocket = ((gateway: Gateway) =>
    class {
      constructor() {
        return new Socket(gateway);
      }
    })(this);

  accept(socket: Socket): void {
    socket.open = true;
    this.sockets.add(socket);
    socket.tell("open", {});
  }

  prompt(text: string): void {
    this.fact("message.user", { content: [{ type: "text", text }] });
  }

  /** A piece of the message that is being written; one that is `lost` only shows in what comes later. */
  piece(text: string, lost: boolean): void {
    this.writing ??= { item: `itm_${++this.numbered}`, text: "" };
    const at = [...this.writing.text].length;
    this.writing.text += text;
    if (!lost) for (const socket of this.followed()) socket.say(this.delta(at, text));
  }

  finish(): void {
    const { writing } = this;
    if (writing === undefined) return;
    this.writing = undefined;
    this.fact("message.assistant", { block: 0, content: [{ type: "text", text: writing.text }] }, writing.item);
  }

  /** The whole of what is being written, as an agent's owner tells it every two seconds. */
  whole(): void {
    if (this.writing !== undefined) for (const socket of this.followed()) socket.say(this.delta(0, this.writing.text));
  }

  again(count: number): void {
    const { length } = this.facts;
    for (const socket of this.followed()) {
      for (let at = Math.max(0, length - count); at < length; at++) socket.say(this.event(at, socket));
    }
  }

  cut(arrives: number): void {
    for (const socket of [...this.sockets]) socket.cut(arrives);
  }

  /** The log goes back to an earlier place and goes on from there otherwise. */
  diverge(keep: number): void {
    this.facts.splice(Math.min(keep, this.facts.length));
    this.writing = undefined;
    this.log++;
    for (const socket of this.followed()) {
      const payload = { reason: "log_diverged", cursor: this.cursor(), snapshot: this.snapshot() };
      socket.say({ type: "event", subscription: socket.subscription, event: "gap", payload });
    }
  }

  hear(socket: Socket, { id, method, params }: Request): void {
    const answer = (payload: object) => socket.say({ type: "res", id, ok: true, payload });
    switch (method) {
      case "hello":
        answer({ protocol: 1, version: "0", host: "h", actor: "ann", role: "owner", methods: [], silent_s: 1e6 });
        break;
      case "subscribe":
        this.subscribe(socket, id, params);
        break;
      case "session.get":
        answer({ state: this.state(), asks: [] });
        break;
      case "session.history":
        answer(this.page(params));
        break;
      default:
        answer({});
    }
  }

  private subscribe(socket: Socket, id: string, params: Record<string, any>): void {
    const say = (payload: object) => socket.say({ type: "res", id, ok: true, payload: { subscription, ...payload } });
    const subscription = `sub_${++this.numbered}`;
    const [log, place] = String(params.cursor ?? "").split(".");
    const cursor = this.cursor();
    const trouble = params.cursor === undefined ? undefined : this.answers.shift();
    if (trouble === "log_unavailable") {
      socket.say({ type: "res", id, ok: false, error: { code: trouble, message: "not yet" } });
      return;
    }
    socket.subscription = subscription;
    if (params.cursor === undefined) {
      say({ cursor, snapshot: this.snapshot() });
    } else if (trouble === "too_far" || log !== String(this.log)) {
      const gap = { reason: trouble ?? "log_diverged", message: "…" };
      say({ cursor, gap, snapshot: this.snapshot() });
      socket.say({ type: "event", subscription, event: "gap", payload: gap });
    } else {
      say({ cursor: params.cursor });
      for (let at = Number(place); at < this.facts.length; at++) socket.say(this.event(at, socket));
      if (this.writing !== undefined) socket.say({ ...this.delta(0, this.writing.text), subscription });
    }
  }

  private page({ before, after, limit }: Record<string, any>): object {
    const place = (cursor: string) => Number(cursor.split(".")[1]);
    const end = before === undefined ? this.facts.length : place(before) - 1;
    const from = after === undefined ? Math.max(0, end - limit) : place(after);
    const events = this.facts.slice(from, after === undefined ? end : from + limit);
    return { events: events.map((event, at) => ({ cursor: this.cursor(from + at + 1), event })), has_more: from > 0 };
  }

  private fact(type: string, data: object, item?: string): void {
    const seq = this.facts.length + 1;
    const id = `e${++this.numbered}`;
    this.facts.push({ id, type, session: SESSION, time: "2026-01-01T00:00:00Z", v: 1, seq, epoch: 1, data, ...(item && { item }) });
    for (const socket of this.followed()) socket.say(this.event(seq - 1, socket));
  }

  private event(at: number, { subscription }: Socket): object {
    const payload = this.facts[at] as Fact;
    return { type: "event", subscription, event: payload.type, cursor: this.cursor(at + 1), payload };
  }

  private delta(at: number, text: string): object {
    const { item } = this.writing as { item: string };
    const payload = { id: "", type: "message.delta", session: SESSION, time: "", v: 1, epoch: 1, item, data: { block: 0, kind: "text", at, text } };
    const [socket] = this.sockets;
    return { type: "event", subscription: socket?.subscription, event: payload.type, cursor: this.cursor(), payload };
  }

  private followed(): Socket[] {
    return [...this.sockets].filter((socket) => socket.subscription !== undefined);
  }

  private cursor(place = this.facts.length): string {
    return `${this.log}.${place}`;
  }

  private snapshot(): object {
    const { writing } = this;
    const blocks = writing === undefined ? [] : [{ session: SESSION, item: writing.item, block: 0, kind: "text", text: writing.text }];
    return { state: this.state(), asks: [], blocks };
  }

  private state(): object {
    return { session: SESSION, seq: this.facts.length, epoch: 1, status: "idle", open_asks: [], context: {} };
  }
}
