/** Why a session is closed, as one says it. */

import type { Text } from "../client/protocol";

/** Reasons of people and programs that wanted it so. */
const WANTED: Record<string, string> = {
  closed: "closed",
  requested: "closed",
  killed: "the agent was killed",
  imported: "an imported transcript",
};

/** `bad`: nobody wanted it. Other reasons than these are an error's code, with its words, or those of whoever closed it. */
export function closing(closed: { reason: string; last_error?: Text | null }): { words: string; bad: boolean } {
  const { reason, last_error } = closed;
  if (reason === "crash_loop") return { words: "the agent ended again and again", bad: true };
  return { words: WANTED[reason] ?? reason, bad: WANTED[reason] === undefined && Boolean(last_error) };
}
