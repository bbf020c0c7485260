/**
 * Prompts on their way. Each has its command's id from the start and stays here until the log has it: after a lost connection it
 * is sent again with the same id, so that it is neither lost nor doubled. What the browser keeps of them is one entry each: other
 * tabs have theirs.
 */

import { createStore, produce } from "solid-js/store";
import { passes, TrunklineError } from "trunkline-client";
import type { Block } from "../client/protocol";
import { isClosed } from "../client/connection";
import { connection } from "./world";
import { all, write } from "./kept";

export interface Waiting {
  id: string;
  session: string;
  content: Block[];
  delivery: "auto" | "queue" | "steer";
  error?: string;
}

const KEPT = "outbox.";
/** Until a prompt is sent again that nobody answered for. */
const AGAIN_MS = 2_000;

const [waiting, setWaiting] = createStore<Waiting[]>(all<Waiting>(KEPT));
/** Prompts are sent in their order, each when the one before is in the log. */
let sent: Promise<void> = Promise.resolve();

export { waiting };

export const waitingOf = (session: string): Waiting[] => waiting.filter((one) => one.session === session);

export function submit(prompt: Waiting): void {
  setWaiting(waiting.length, prompt);
  write(KEPT + prompt.id, prompt);
  sent = sent.then(() => send(prompt.id));
}

/** Takes a prompt back that has not reached the log. */
export function withdraw(id: string): Waiting | undefined {
  const found = waiting.find((one) => one.id === id);
  const copy = found && { ...found };
  remove(id);
  return copy;
}

/** Sends what waits, once a connection is there. */
export function flush(): void {
  for (const { id, error } of waiting) if (error === undefined) sent = sent.then(() => send(id));
}

async function send(id: string): Promise<void> {
  const one = waiting.find((other) => other.id === id);
  if (one === undefined || one.error !== undefined) return;
  const before = waiting.find((other) => other.session === one.session && other.error === undefined);
  if (before?.id !== id) return; // its turn comes with the next `flush`
  try {
    const { session, content, delivery } = one;
    await connection.call("session.prompt", { session, content, delivery, id });
    remove(id);
  } catch (error) {
    if (!(error instanceof TrunklineError) || isClosed(error)) return;
    if (passes(error)) {
      setTimeout(flush, AGAIN_MS);
      return;
    }
    setWaiting((other) => other.id === id, "error", error.message);
    write(KEPT + id, { ...one, error: error.message });
  }
}

function remove(id: string): void {
  setWaiting(
    produce((all) => {
      const at = all.findIndex((one) => one.id === id);
      if (at >= 0) all.splice(at, 1);
    }),
  );
  write(KEPT + id, undefined);
}
