/** Acts on a session that have an outcome to wait for. */

import { newCommandId, newSessionId, TrunklineError, type CommandSent } from "trunkline-client";
import { connection } from "./world";

const BEGINS_MS = 30_000;
const AGAIN_MS = 200;

/** Sends a command and waits for its outcome; what came of it. Throws where it failed. */
export async function done(verb: string, params: object): Promise<unknown> {
  const answer = (await connection.request(`session.${verb}`, { ...params, id: newCommandId(), wait: true })) as CommandSent;
  if (answer.outcome === "finished") return answer.result;
  throw new TrunklineError(answer.error?.code ?? "internal", answer.error?.message ?? `${verb} was ${answer.outcome}`);
}

/** A copy of a session: its id, once it is there. */
export async function fork(session: string): Promise<string> {
  const made = newSessionId();
  await done("fork", { session, new: made });
  const until = Date.now() + BEGINS_MS;
  for (;;) {
    try {
      await connection.call("session.get", { session: made, messages: 0 });
      return made;
    } catch (error) {
      const begins = error instanceof TrunklineError && error.code === "unknown_session" && Date.now() < until;
      if (!begins) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** The files that going back to before the prompt `to` would change. Throws where the agent can't. */
export async function rewound(session: string, to: string): Promise<string[]> {
  const result = (await done("rewind", { session, to, dry_run: true })) as { files?: string[] | null } | null;
  return result?.files ?? [];
}
