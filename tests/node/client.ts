// A program made of the TypeScript client. Arguments: a JSON object {url, token, cwd}. Prints `kill` where the gateway is to be
// killed, and at last one JSON object with what it has seen. It follows over the socket of `ws`, and answers over Node's own.
import { Link, TrunklineError, type KnownEvent, type Notice } from "trunkline-client";
// @ts-expect-error it brings no types
import { WebSocket as Ws } from "ws";

declare const process: { argv: string[] };

const { url, token, cwd } = JSON.parse(process.argv[2]!) as { url: string; token: string; cwd: string };
const follower = new Link({ url, token, WebSocket: Ws }, { name: "follower", mostWaiting: 5 });
const approver = new Link({ url, token }, { name: "approver" });
const seen = { seqs: [] as number[], ids: [] as string[], notices: [] as string[], said: [] as string[], tools: [] as string[], pieces: "", asks: 0, refused: "" };

const { session } = await approver.call("session.create", { adapter: "demo", cwd });

async function follow(): Promise<void> {
  let turns = 0;
  for await (const notice of follower.watch({ session, from: "start" })) {
    note(notice);
    if (notice.kind !== "event") continue;
    const { event } = notice;
    if (event.type === "permission.requested") {
      seen.asks += 1;
      await approver.call("ask.answer", { ask: event.data.ask, session, behaviour: "allow" });
    }
    if (event.type === "turn.completed" && ++turns === 2) return;
    if (event.type === "message.delta" && seen.pieces.length > 0 && !seen.notices.includes("killing")) {
      seen.notices.push("killing");
      console.log("kill");
    }
  }
}

function note(notice: Notice): void {
  if (notice.kind === "event") look(notice.event);
  else seen.notices.push(notice.kind === "broken" ? (notice.mended ? "mended" : "broken") : notice.kind);
}

function look(event: KnownEvent): void {
  if (event.type === "message.delta") {
    // Pieces come again from the block's beginning after a break: `at` says where each belongs.
    seen.pieces = seen.pieces.slice(0, event.data.at) + event.data.text;
    return;
  }
  seen.ids.push(event.id);
  take(event, seen.seqs);
  if (event.type === "tool.completed") seen.tools.push(event.data.status);
  if (event.type === "message.assistant") {
    for (const block of event.data.content ?? []) if (block.type === "text" && typeof block.text === "string") seen.said.push(block.text);
  }
}

/** A reader that does something else until another one has read all: more has come by then than may wait for it. */
async function late(last: number): Promise<{ seqs: number[]; openings: number }> {
  const made = { seqs: [] as number[], openings: 0 };
  for await (const notice of follower.watch({ session, from: "start", deltas: false })) {
    if (notice.kind === "opened" && ++made.openings === 1) await readTo(last, []);
    if (notice.kind === "event" && take(notice.event, made.seqs) === last) break;
  }
  return made;
}

async function readTo(last: number, seqs: number[]): Promise<void> {
  for await (const notice of follower.watch({ session, from: "start", deltas: false })) {
    if (notice.kind === "event" && take(notice.event, seqs) === last) return;
  }
}

function take(event: KnownEvent, seqs: number[]): number | undefined {
  if (typeof event.seq === "number") seqs.push(event.seq);
  return seqs.at(-1);
}

const following = follow();
await approver.call("session.prompt", { session, text: "slow 40" });
await approver.call("session.prompt", { session, text: "ask touch made" });
await following;
try {
  await approver.call("session.get", { session: `ses_${"0".repeat(32)}` });
} catch (error) {
  seen.refused = error instanceof TrunklineError ? error.code : String(error);
}
const lagged = await late(seen.seqs.at(-1)!);
await follower.close();
await approver.close();
console.log(JSON.stringify({ ...seen, late: lagged }));

/** Never run: what the types refuse. */
export async function refused(): Promise<void> {
  // @ts-expect-error a number is no text
  await approver.call("session.prompt", { session, text: 1 });
  // @ts-expect-error there is no such method
  await approver.call("session.promt", { session, text: "hello" });
  // @ts-expect-error the session is missing
  await approver.call("session.get");
  await approver.call("session.list");
}
