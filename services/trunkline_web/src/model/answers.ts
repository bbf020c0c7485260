/** What an answer to an ask says, as parameters of `ask.answer`. Pure. */

import type { AskOption, Question, Requested } from "../client/protocol";

export interface Answer {
  behaviour: "allow" | "deny" | "answered";
  option?: string;
  updated_input?: unknown;
  answers?: Record<string, unknown>;
  message?: string;
}

function first(requested: Requested, kind: string): AskOption | undefined {
  return requested.options?.find((option) => option.kind === kind);
}

export function allow(requested: Requested, input?: unknown): Answer {
  const option = first(requested, "allow_once")?.id;
  return { behaviour: "allow", ...(option && { option }), ...(input !== undefined && { updated_input: input }) };
}

export function deny(requested: Requested, message = ""): Answer {
  const option = first(requested, "reject_once")?.id;
  return { behaviour: "deny", ...(option && { option }), ...(message.trim() && { message: message.trim() }) };
}

/** The options of an ask beside plain allowing and denying, which have buttons of their own. */
export function further(requested: Requested): AskOption[] {
  const plain = [first(requested, "allow_once")?.id, first(requested, "reject_once")?.id];
  return (requested.options ?? []).filter((option) => !plain.includes(option.id));
}

/** Picks an option: its kind says whether that allows or denies; a plan's other options allow it. */
export function choose(option: AskOption): Answer {
  return { behaviour: option.kind?.startsWith("reject") ? "deny" : "allow", option: option.id };
}

export interface Given {
  chosen: string[];
  words: string;
}

/** The answers to questions; undefined while one has none. */
export function answers(questions: Question[], given: Record<string, Given>): Answer | undefined {
  const said: Record<string, unknown> = {};
  for (const question of questions) {
    const { chosen = [], words = "" } = given[question.id] ?? {};
    const own = words.trim();
    const all = own ? [...chosen, own] : chosen;
    if (all.length === 0) return undefined;
    said[question.id] = question.multiple ? all : (own || chosen[0]);
  }
  return { behaviour: "answered", answers: said };
}
