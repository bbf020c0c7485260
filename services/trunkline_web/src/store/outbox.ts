/**
 * Prompts on their way. Each has its command's id from the start and stays here until the log has it: after a lost connection it
 * is sent again with the same id, so that it is neither lost nor doubled.
 */

import { createStore, produce } from "solid-js/store";
import { TrunklineError } from "trunkline-client";
import type { Block } from "../client/protocol";
import { isClosed } from "../client/connection";
import { connection } from "./world";
import { read, write } from "./kept";

export interface Waiting {
  id: string;
  session: string;
  content: Block[];
  delivery: "auto" | "queue" | "steer";
  error?: string;
}

const [waiting, setWaiting] = createStore<Waiting[]>(read<Waiting[]>("outbox", []));
const sending = new Set<string>();

export { waiting };

export const waitingOf = (session: string): Waiting[] => waiting.filter((one) => one.session === session);

export function submit(prompt: Waiting): void {
  setWaiting(waiting.length, prompt);
  keep();
  void send(prompt.id);
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
  for (const one of waiting) if (one.error === undefined) void send(one.id);
}

async function send(id: string): Promise<void> {
  const one = waiting.find((other) => other.id === id);
  if (one === undefined || sending.has(id)) return;
  sending.add(id);
  try {
    const { session, content, delivery } = one;
    await connection.call("session.prompt", { session, content, delivery, id });
    remove(id);
  } catch (error) {
    if (!(error instanceof TrunklineError) || isClosed(error)) return;
    setWaiting((other) => other.id === id, "error", error.message);
    keep();
  } finally {
    sending.delete(id);
  }
}

function remove(id: string): void {
  setWaiting(
    produce((all) => {
      const at = all.findIndex((one) => one.id === id);
      if (at >= 0) all.splice(at, 1);
    }),
  );
  keep();
}

function keep(): void {
  write("outbox", waiting.length > 0 ? waiting : undefined);
}
