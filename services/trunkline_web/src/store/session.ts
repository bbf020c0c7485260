/** One session that is looked at: its state, its transcript, who else is there. Live, or as of a past point of the log. */

import { batch, createSignal, type Accessor } from "solid-js";
import { createStore, produce, reconcile } from "solid-js/store";
import type { Gap, LogEvent, Opened, Presence, SessionState, Snapshot } from "../client/protocol";
import { isClosed } from "../client/connection";
import { Memory, type Transcript } from "../model/rows";
import { apply, attach, attachAsks, empty, fold, type Placed } from "../model/transcript";
import { connection, straight } from "./world";

/** The first page is on the screen sooner if it is small. */
const FIRST_PAGE = 40;
const PAGE = 120;
const REFRESH_MS = 300;
/** Facts after which the state is asked for anew. */
const STIRRING = /^(session|turn|ask|permission|question|plan|usage|task|auth)\.|^error$/;
/** Facts that have no row: they are not kept for folding again. */
const SILENT = new Set(["native.message", "terminal.screen", "command.accepted", "command.finished", "hook.fired"]);

interface Page {
  events: { cursor: string; event: LogEvent & { native?: unknown } }[];
  has_more: boolean;
}

export interface SessionView {
  session: string;
  at: string | undefined;
  state: { now?: SessionState };
  transcript: Transcript;
  loading: Accessor<boolean>;
  /** Whether there is more before what is shown. */
  older: Accessor<boolean>;
  /** Why not everything could be given, after a gap. */
  gap: Accessor<string>;
  present: Accessor<Presence[]>;
  failure: Accessor<string>;
  /** Puts the page before what is shown before it. */
  loadOlder(): Promise<void>;
  end(): void;
}

/** Follows a session; with `at`, the cursor of an event, it shows the session as it was right after that one. */
export function watch(session: string, at?: string): SessionView {
  const [state, setState] = createStore<{ now?: SessionState }>({});
  const [transcript, setTranscript] = createStore<Transcript>(empty());
  const [loading, setLoading] = createSignal(true);
  const [older, setOlder] = createSignal(false);
  const [gap, setGap] = createSignal("");
  const [present, setPresent] = createSignal<Presence[]>([]);
  const [failure, setFailure] = createSignal("");

  let memory = new Memory();
  /** All facts that are shown, for folding again below an older page. */
  let facts: Placed[] = [];
  /** Live events that came before the first page; undefined once it is there. */
  let early: Placed[] | undefined = [];
  let first: string | undefined;
  let fetching = false;
  /** Counts how often it began anew: pages asked for before that are of no use. */
  let begun = 0;
  let ended = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function feed(placed: Placed): void {
    const kept = lean(placed.event);
    const isNew = apply(transcript_, memory, kept, placed.cursor);
    if (isNew && placed.cursor !== undefined && !isDelta(kept) && !SILENT.has(kept.type)) facts.push({ ...placed, event: kept });
  }

  // `produce` hands out the store to be changed in place; outside of it nobody changes it
  let transcript_: Transcript = transcript;
  function change(act: () => void): void {
    setTranscript(
      produce((draft) => {
        transcript_ = draft;
        act();
      }),
    );
  }

  async function begin(snapshot: Snapshot): Promise<void> {
    const mine = ++begun;
    early = [];
    if (snapshot.state) setState("now", reconcile(straight(snapshot.state)));
    try {
      const page = await connection.call("session.history", { session, limit: FIRST_PAGE });
      if (ended || mine !== begun) return;
      replace(page, snapshot);
    } catch (error) {
      if (mine === begun) fail(error);
    }
  }

  function replace(page: Page, snapshot?: Snapshot): void {
    const waiting = early ?? [];
    early = undefined;
    memory = new Memory();
    facts = [];
    first = page.events[0]?.cursor;
    batch(() => {
      change(() => {
        transcript_.rows.splice(0);
        transcript_.open.splice(0);
        for (const placed of page.events) feed(placed);
        if (snapshot) {
          attachAsks(transcript_, memory, snapshot.asks);
          attach(transcript_, memory, snapshot.blocks);
        }
        for (const placed of waiting) feed(placed);
      });
      setOlder(page.has_more);
      setLoading(false);
    });
  }

  async function loadOlder(): Promise<void> {
    if (fetching || !older() || first === undefined || early !== undefined) return;
    fetching = true;
    const mine = begun;
    try {
      const page = await connection.call("session.history", { session, before: first, limit: PAGE });
      if (ended || mine !== begun || page.events.length === 0) return;
      first = page.events[0]?.cursor;
      facts = [...page.events.map(({ cursor, event }) => ({ cursor, event: lean(event) })), ...facts];
      const again = fold(facts);
      // what is being written is in no fact: it goes on from here
      for (const [key, writing] of memory.writings) again.memory.writings.set(key, writing);
      const open = transcript.rows.filter((row) => row.kind === "assistant" && row.parts.some((part) => part.open));
      memory = again.memory;
      batch(() => {
        for (const row of open) if (!memory.known.has(row.key)) again.transcript.rows.push(row);
        for (const row of open) memory.known.add(row.key);
        setTranscript(reconcile(again.transcript, { key: "key" }));
        setOlder(page.has_more);
        setFailure("");
      });
    } catch (error) {
      if (!isClosed(error)) fail(error);
    } finally {
      fetching = false;
    }
  }

  async function past(cursor: string): Promise<void> {
    try {
      const next = await connection.call("session.history", { session, after: cursor, limit: 1 });
      const before = next.events[0]?.cursor;
      const page = await connection.call("session.history", { session, limit: PAGE, ...(before && { before }) });
      if (ended) return;
      early = [];
      replace(page);
    } catch (error) {
      fail(error);
    }
  }

  function fail(error: unknown): void {
    if (isClosed(error)) return;
    setFailure(error instanceof Error ? error.message : String(error));
    setLoading(false);
  }

  function stir(): void {
    timer ??= setTimeout(async () => {
      timer = undefined;
      const found = await connection.call("session.get", { session, messages: 0 }).catch(() => undefined);
      if (found && !ended) setState("now", reconcile(straight(found.state)));
    }, REFRESH_MS);
  }

  const subscription =
    at === undefined
      ? connection.follow(
          { session, presence: true },
          {
            opened({ snapshot, gap }: Opened) {
              setFailure("");
              if (gap) setGap(gap.reason);
              if (snapshot) void begin(snapshot);
              else if (early !== undefined) void begin({ asks: [], blocks: [] });
              stir();
            },
            event(event, cursor) {
              if (early !== undefined) early.push({ event, cursor });
              else change(() => feed({ event, cursor }));
              if (STIRRING.test(event.type)) stir();
            },
            gap({ reason, snapshot }: Gap) {
              setGap(reason);
              if (snapshot) void begin(snapshot);
            },
            presence: (_, who) => setPresent(who),
            failed: fail,
          },
        )
      : undefined;
  if (at !== undefined) {
    void past(at);
    stir();
  }

  return {
    session,
    at,
    state,
    transcript,
    loading,
    older,
    gap,
    present,
    failure,
    loadOlder,
    end() {
      ended = true;
      clearTimeout(timer);
      subscription?.end();
    },
  };
}

const isDelta = (event: LogEvent): boolean => event.type === "message.delta" || event.type === "tool.progress";

/** An event without the agent's own message, which is most of its bytes and has no row. */
function lean(event: LogEvent & { native?: unknown }): LogEvent {
  if (event.native === undefined) return event;
  const { native: _, ...rest } = event;
  return rest;
}
