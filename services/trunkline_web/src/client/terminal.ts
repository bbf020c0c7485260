/** One viewer of a terminal: `/ws/terminal/<session>`. Reconnects with the same viewer, so that the keyboard stays its own. */

import { delayOf } from "./backoff";
import type { ErrorInfo } from "./protocol";

export interface TerminalState {
  running?: boolean;
  columns?: number;
  rows?: number;
  writable?: boolean;
  writer?: { viewer: string; actor?: string } | null;
}

export interface Screen {
  /** What is printed next follows what was. `reset`: it is the whole screen, of that size. */
  print(data: Uint8Array, reset?: { columns: number; rows: number }): void;
  state(state: TerminalState, mine: boolean): void;
  note(words: string): void;
}

const HEAD = 17;
const ACK_EVERY = 16 * 1024;
/** Until a connection on which nothing comes is asked whether it lives, and until it is taken for dead then. */
const SILENT_MS = 20_000;
const ANSWER_MS = 5_000;
const ENDED = new Set(["unauthorized", "forbidden", "revoked", "expired", "unknown_session"]);

export class TerminalLink {
  private socket: WebSocket | undefined;
  private viewer: string;
  private received = 0;
  private acked = 0;
  private failures = 0;
  private ended = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private dialled = 0;
  private probing: ReturnType<typeof setTimeout> | undefined;
  /** Whether the gateway answers pings: one of before knows none. */
  private answers = false;
  /** That the keyboard is wanted, or had: each connection asks for it anew. */
  private wish: { force: boolean } | undefined;
  private mine = false;

  constructor(
    private readonly url: string,
    viewer: string,
    private readonly token: string | undefined,
    private readonly screen: Screen,
    private readonly Maker: new (url: string) => WebSocket = WebSocket,
  ) {
    this.viewer = viewer;
    this.dial();
  }

  type(keys: string): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(new TextEncoder().encode(keys));
  }

  take(force: boolean): void {
    this.wish = { force };
    this.say({ type: "take", force });
  }

  release(): void {
    this.wish = undefined;
    this.say({ type: "release" });
  }

  resize(columns: number, rows: number): void {
    this.say({ type: "resize", columns, rows });
  }

  end(): void {
    this.ended = true;
    clearTimeout(this.timer);
    clearTimeout(this.probing);
    this.socket?.close();
  }

  /** Asks whether the connection lives; without an answer there is another one soon. */
  probe(): void {
    if (!this.answers || this.ended || this.socket?.readyState !== WebSocket.OPEN) return;
    this.say({ type: "ping" });
    clearTimeout(this.probing);
    this.probing = setTimeout(() => this.redial(), ANSWER_MS);
  }

  /** Something has come: it lives. */
  private heard(): void {
    clearTimeout(this.probing);
    this.probing = setTimeout(() => this.probe(), SILENT_MS);
  }

  /** Tries again now if it is waiting. A connection that was dialled before another was lost, at `lost` (Date.now()), is taken for dead. */
  renew(lost = 0): void {
    if (this.ended || (this.timer === undefined && this.dialled > lost)) return;
    this.failures = 0;
    this.redial();
  }

  private redial(): void {
    const old = this.socket;
    this.dial();
    old?.close();
  }

  private dial(): void {
    clearTimeout(this.timer);
    clearTimeout(this.probing);
    this.timer = undefined;
    this.answers = false;
    this.dialled = Date.now();
    const socket = new this.Maker(this.url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.received = this.acked = 0;
    socket.onopen = () => {
      if (this.socket !== socket) return;
      this.say({ type: "hello", viewer: this.viewer, history: 1000, token: this.token });
      if (this.wish !== undefined) this.say({ type: "take", ...this.wish });
    };
    socket.onmessage = ({ data }) => {
      if (this.socket !== socket) return;
      this.heard();
      typeof data === "string" ? this.hear(JSON.parse(data)) : this.show(new Uint8Array(data));
    };
    socket.onclose = ({ reason }) => {
      if (this.ended || this.socket !== socket) return;
      clearTimeout(this.probing);
      if (ENDED.has(reason)) {
        this.ended = true;
        this.screen.note(`The gateway ended the connection: ${reason}`);
        return;
      }
      this.screen.note("connecting again …");
      this.timer = setTimeout(() => this.dial(), delayOf(++this.failures));
    };
  }

  private hear(said: Record<string, any>): void {
    switch (said.type) {
      case "hello":
        this.failures = 0;
        this.viewer = said.viewer;
        this.answers = said.answers === true;
        this.screen.note("");
        if (said.state) this.tell(said.state);
        break;
      case "state":
        this.tell(said.state);
        break;
      case "lost":
        this.screen.note("the terminal's owner is away …");
        break;
      case "error":
        if (said.of === "take") this.wish = undefined;
        this.screen.note((said.error as ErrorInfo).message);
        break;
    }
  }

  private tell(state: TerminalState): void {
    const mine = state.writer?.viewer === this.viewer;
    if (mine) this.wish = { force: false };
    else if (this.mine) this.wish = undefined;
    this.mine = mine;
    this.screen.state(state, mine);
  }

  private show(frame: Uint8Array): void {
    this.received += frame.length;
    const content = frame.subarray(HEAD);
    if (frame[0] === 0x6f) this.screen.print(content);
    else if (frame[0] === 0x70) {
      const end = content.indexOf(0x0a);
      const { columns, rows } = JSON.parse(new TextDecoder().decode(content.subarray(0, end)));
      this.screen.print(content.subarray(end + 1), { columns, rows });
      this.screen.note("");
    }
    if (this.received - this.acked >= ACK_EVERY || frame[0] === 0x70) {
      this.acked = this.received;
      this.say({ type: "ack", bytes: this.received });
    }
  }

  private say(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
