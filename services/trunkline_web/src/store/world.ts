/** What the app knows of all sessions: the connection, the list, the asks. One subscription keeps it current. */

import { createSignal } from "solid-js";
import { createStore, produce, reconcile } from "solid-js/store";
import { newCommandId } from "trunkline-client";
import { isClosed, Line, type Maker, type State } from "../client/connection";
import { leave, redeem, sign, unpair } from "../client/device";
import type {
  AskRecord,
  Hello,
  LogEvent,
  Opened,
  Role,
  SessionState,
  Snapshot,
} from "../client/protocol";
import type { Answer } from "../model/answers";
import { clear } from "./kept";
import { forget, isPaired } from "../seal/record";
import { unturned } from "../model/format";
import type { TeamSummary } from "../model/team";

const RANK: Record<Role, number> = { viewer: 0, participant: 1, approver: 2, owner: 3 };
const TOKEN = "token";
const REFRESH_MS = 300;
const MANY = 8;
const TEAMS_MS = 700;
const MOST_TEAMS = 200;
/** What changes how a session looks in the list; the rest of its events are its own page's business. */
const PATTERNS = [
  ...["session.created", "session.initialized", "session.updated", "session.status", "session.closed"],
  ...["session.archived", "session.resumed", "session.erased", "session.claimed"],
  ...["team.created", "team.deleted", "team.member_joined", "team.member_active", "team.member_idle"],
  ...["team.member_shutdown", "team.task_created", "team.task_completed", "team.task_deleted"],
  ...["turn.*", "permission.requested", "question.asked", "plan.proposed", "ask.*", "message.user", "error"],
];

interface World {
  sessions: Record<string, SessionState>;
  asks: Record<string, AskRecord>;
  /** The teams that have not ended. */
  teams: TeamSummary[];
  loaded: boolean;
  total: number;
  /** How many of them, the latest, are in the list; what was looked for is in it beside these. */
  listed: number;
}

const [link, setLink] = createSignal<State>({ state: "idle" });
const [hello, setHello] = createSignal<Hello>();
const [world, setWorld] = createStore<World>({ sessions: {}, asks: {}, teams: [], loaded: false, total: 0, listed: 0 });
const [toast, setToast] = createSignal("");

export { hello, link, toast, world };

/** Why a sign-in link did nothing, until it is known whether this browser is signed in without. */
let refused = "";

/** When the latest connection was lost, by Date.now(); 0: none was. */
let lostAt = 0;

export const connection = new Line(location.origin, (now) => {
  if (link().state === "open") lostAt = Date.now();
  const isOver = now.state === "signed_out";
  setLink(isOver && refused ? { ...now, why: refused } : now);
  if (now.state === "open") {
    if (refused) say(refused);
    setHello(now.hello);
    for (const act of connected) act(lostAt);
  } else if (isOver) {
    sessionStorage.removeItem(TOKEN);
  }
  if (now.state === "open" || isOver) refused = "";
});

let through: Maker | undefined;
/** What WebSockets of the gateway are made of: of the relay's, where this browser is paired with a host. */
export const socketMaker = (): Maker | undefined => through;

const connected = new Set<(lost: number) => void>();

/** Has `act` done whenever a connection is there again, told when the one before was lost; what is returned ends that. */
export function onConnected(act: (lost: number) => void): () => void {
  connected.add(act);
  return () => connected.delete(act);
}

const leaving = new Set<() => Promise<void>>();

/** Has `act` done before this browser signs out. */
export function onLeaving(act: () => Promise<void>): void {
  leaving.add(act);
}

export const may = (role: Role): boolean => RANK[hello()?.role ?? "viewer"] >= RANK[role];

export function say(words: unknown): void {
  setToast(words instanceof Error ? words.message : String(words));
}

export const sessions = (): SessionState[] =>
  Object.values(world.sessions).sort((a, b) => (b.updated ?? "").localeCompare(a.updated ?? ""));

export const openAsks = (): AskRecord[] =>
  Object.values(world.asks)
    .filter((ask) => ask.status === "open")
    .sort((a, b) => a.time.localeCompare(b.time));

/** Begins: with the code of a sign-in link, a token of this tab, or the cookie. */
export async function begin(): Promise<void> {
  addEventListener("online", () => connection.retry());
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && connection.retry());
  const code = location.pathname === "/sign-in" && new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.pathname === "/sign-in") history.replaceState(null, "", "/");
  if (code) {
    try {
      await redeem(code);
      sessionStorage.removeItem(TOKEN);
    } catch (error) {
      // whoever opens an old link again may be signed in by it already
      refused = error instanceof Error ? error.message : String(error);
    }
  }
  connection.follow({ patterns: PATTERNS, deltas: false }, { opened, event, gap: (gap) => take(gap.snapshot) });
  if (await isPaired()) through = (await import("../seal/remote")).RelaySocket;
  connection.start(sessionStorage.getItem(TOKEN) ?? undefined, through);
}

/** Brings more sessions into the list than the snapshot had, the latest of the rest. */
export async function moreSessions(): Promise<void> {
  const offset = world.listed;
  const { sessions, total } = await connection.call("session.list", { limit: 200, offset });
  for (const state of sessions) put(state);
  setWorld({ total, listed: offset + sessions.length });
}

/** How many sessions are not in the list yet. */
export const older = (): number => Math.max(0, world.total - world.listed);

/** Brings sessions into the list that are looked for and were not in the snapshot. */
export async function bring(wanted: { search: string } | { workspace: string }): Promise<void> {
  const { sessions } = await connection.call("session.list", { ...wanted, limit: 100 });
  for (const state of sessions) put(state);
}

export function signIn(token: string): void {
  sessionStorage.setItem(TOKEN, token);
  // what this page knows is for the eyes of who was signed in before
  if (hello() === undefined) connection.start(token);
  else location.reload();
}

export async function signOut(): Promise<void> {
  await leaveHere();
  clear(); // drafts are for the eyes of who wrote them
}

async function leaveHere(): Promise<void> {
  await Promise.allSettled([...leaving].map((act) => act()));
  sessionStorage.removeItem(TOKEN);
  if (through === undefined) {
    await leave().catch(() => undefined);
    connection.stop("You have signed out.");
    return;
  }
  const told = await unpair(connection);
  await forget().catch(() => undefined);
  connection.stop(told ? "This browser is no longer paired." : `This browser has forgotten its keys, but the host could not be told and still lists it: \`trunkline devices revoke ${hello()?.device ?? ""}\` there ends that.`);
}

/** Decides an ask. The same decision again, after a lost connection, is the same answer. */
export async function decide(record: AskRecord, answer: Answer): Promise<void> {
  const key = `${record.ask} ${JSON.stringify(answer)}`;
  const id = minted.get(key) ?? newCommandId();
  minted.set(key, id);
  const given = { id, ask: record.ask, ...answer };
  const signature = await sign(connection, given);
  await connection.call("ask.answer", { ...given, session: record.session, signature });
}

const minted = new Map<string, string>();

function opened({ snapshot }: Opened): void {
  if (snapshot === undefined) {
    // resumed: what was missed comes as events
    return;
  }
  take(snapshot);
}

function take(snapshot: Snapshot | undefined): void {
  if (snapshot === undefined) return;
  setWorld({
    sessions: Object.fromEntries((snapshot.sessions ?? []).map((state) => [state.session, straight(state)])),
    asks: Object.fromEntries(snapshot.asks.map((ask) => [ask.ask, ask])),
    loaded: true,
    total: snapshot.total ?? 0,
    listed: snapshot.sessions?.length ?? 0,
  });
  // what is asked wants its session, however long that has been quiet
  for (const { session } of snapshot.asks) {
    if (world.sessions[session] !== undefined) continue;
    quiet.add(session);
    stir(session);
  }
}

/** How an ask ended, if that is what an event says. */
function endOf(event: LogEvent): Pick<AskRecord, "ask" | "status" | "decision" | "withdrawn"> | undefined {
  switch (event.type) {
    case "ask.decided":
      return { ask: event.data.ask, status: "decided", decision: event.data };
    case "ask.expired":
      return { ask: event.data.ask, status: "expired" };
    case "ask.withdrawn":
      return { ask: event.data.ask, status: "withdrawn", withdrawn: event.data.why };
    default:
      return undefined;
  }
}

function event(event: LogEvent): void {
  const end = endOf(event);
  if (end !== undefined && world.asks[end.ask]?.status === "open") setWorld("asks", end.ask, end);
  if (event.type === "session.erased") {
    setWorld(
      "sessions",
      produce((all) => {
        delete all[event.session];
      }),
    );
    setWorld(
      "asks",
      produce((all) => {
        for (const [id, ask] of Object.entries(all)) if (ask.session === event.session) delete all[id];
      }),
    );
    setWorld(({ total, listed }) => ({ total: total - 1, listed: listed - 1 }));
    return;
  }
  if (event.type.startsWith("team.")) {
    teamsTimer ??= setTimeout(() => void refreshTeams(), TEAMS_MS);
    return;
  }
  if (event.type === "session.created") setWorld("total", (total) => total + 1);
  quiet.delete(event.session);
  stir(event.session);
}

function stir(session: string): void {
  dirty.add(session);
  timer ??= setTimeout(() => void refresh(), REFRESH_MS);
}

const dirty = new Set<string>();
/** Sessions that are asked for though nothing has come of them: they are none of the latest. */
const quiet = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** The gateway has the states folded: those that changed are asked for, a few times a second at most. */
async function refresh(): Promise<void> {
  const wanted = [...dirty];
  dirty.clear();
  timer = undefined;
  try {
    let single = wanted;
    if (wanted.length > MANY) {
      const { sessions, total } = await connection.call("session.list", { limit: 200 });
      const { asks } = await connection.call("ask.list");
      for (const state of sessions) put(state);
      setWorld((now) => ({ total, listed: Math.max(now.listed, sessions.length) }));
      putAsks(asks);
      single = wanted.filter((session) => world.sessions[session] === undefined);
    }
    const found = await Promise.all(
      single.map((session) =>
        connection.call("session.get", { session, messages: 0 }).catch(later(session)),
      ),
    );
    for (const one of found) {
      if (one === undefined) continue;
      const { session } = one.state;
      if (world.sessions[session] === undefined && !quiet.has(session)) setWorld("listed", (listed) => listed + 1);
      put(one.state);
      putAsks(one.asks);
    }
  } catch (error) {
    if (isClosed(error)) for (const session of wanted) dirty.add(session);
  }
}

let teamsTimer: ReturnType<typeof setTimeout> | undefined;

/** The boards are projections, which come after the log: a change may show only with the next one, or with `again`. */
async function refreshTeams(again = true): Promise<void> {
  teamsTimer = undefined;
  try {
    const { teams } = await connection.call("team.list", { limit: MOST_TEAMS });
    setWorld("teams", reconcile(teams, { key: "id" }));
    if (again) teamsTimer ??= setTimeout(() => void refreshTeams(false), 2 * TEAMS_MS);
  } catch (error) {
    if (!isClosed(error)) say(error);
  }
}

const later = (session: string) => (error: unknown) => {
  if (isClosed(error)) dirty.add(session);
  return undefined;
};

onConnected(() => {
  void refreshTeams(false);
  if (dirty.size > 0) timer ??= setTimeout(() => void refresh(), REFRESH_MS);
});

function put(told: SessionState): void {
  const state = straight(told);
  if (world.sessions[state.session] === undefined) setWorld("sessions", state.session, state);
  else setWorld("sessions", state.session, reconcile(state));
}

/** A state whose words turn no writing around, wherever they are shown. */
export function straight(state: SessionState): SessionState {
  return { ...state, title: state.title && unturned(state.title), last_text: state.last_text && unturned(state.last_text) };
}

function putAsks(asks: AskRecord[]): void {
  for (const ask of asks) {
    const known = world.asks[ask.ask];
    // an end that has come as an event is not taken back by an answer that was under way
    if (known !== undefined && known.status !== "open" && ask.status === "open") continue;
    if (known === undefined && ask.status !== "open") continue;
    setWorld("asks", ask.ask, known === undefined ? ask : reconcile(ask));
  }
}
