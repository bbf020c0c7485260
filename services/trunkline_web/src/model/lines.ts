/** A change of a file as lines, for a view. Pure. */

import { structuredPatch } from "diff";
import type { Change } from "./tools";

export interface Line {
  sign: "+" | "-" | " " | "@";
  text: string;
}

/** Edits beyond which no shortest way between two texts is looked for: they are shown one after the other. */
const MOST_EDITS = 1_000;

export function linesOf(change: Change): Line[] {
  if (change.unified !== undefined) return ofUnified(change.unified);
  const patch = structuredPatch("", "", change.old, change.new, "", "", { context: 3, maxEditLength: MOST_EDITS });
  if (patch === undefined) return [...all(change.old, "-"), ...all(change.new, "+")];
  return patch.hunks.flatMap((hunk, number) => [
    ...(number > 0 ? [{ sign: "@" as const, text: `line ${hunk.newStart}` }] : []),
    ...hunk.lines.filter((line) => !line.startsWith("\\")).map(lineOf),
  ]);
}

export function counted(lines: Line[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const { sign } of lines) {
    if (sign === "+") added++;
    else if (sign === "-") removed++;
  }
  return { added, removed };
}

function ofUnified(text: string): Line[] {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .filter((line) => !/^(diff |index |--- |\+\+\+ |\\)/.test(line))
    .map((line) => (line.startsWith("@@") ? { sign: "@" as const, text: line } : lineOf(line)));
}

function lineOf(line: string): Line {
  const sign = line[0];
  return sign === "+" || sign === "-" ? { sign, text: line.slice(1) } : { sign: " ", text: line.slice(1) };
}

function all(text: string, sign: "+" | "-"): Line[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => ({ sign, text: line }));
}
