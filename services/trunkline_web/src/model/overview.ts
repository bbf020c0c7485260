/** What `overview.get` tells, and how a page reads it. */

export type { Glance as Overview, Spend } from "trunkline-client";

type Tone = "ask" | "busy" | "bad" | "rest";

const KINDS: [string, Tone, string[]][] = [
  ["Waiting for you", "ask", ["waiting"]],
  ["Running", "busy", ["running", "starting", "interrupting", "compacting", "authenticating"]],
  ["Stalled", "bad", ["stalled", "retrying", "degraded"]],
  ["Failed", "bad", ["failed"]],
  ["Idle", "rest", ["idle", "stopped"]],
  ["Over", "rest", ["closed", "archived"]],
];

/** The statuses in a few kinds, the urgent ones first; a status that is unknown here is a kind of its own. */
export function kindsOf(statuses: Record<string, number>): { name: string; tone: Tone; many: number }[] {
  const known = new Set(KINDS.flatMap(([, , names]) => names));
  const others = Object.keys(statuses).filter((name) => !known.has(name));
  return [
    ...KINDS.map(([name, tone, names]) => ({ name, tone, many: names.reduce((sum, one) => sum + (statuses[one] ?? 0), 0) })),
    ...others.map((name) => ({ name, tone: "rest" as Tone, many: statuses[name] ?? 0 })),
  ];
}

/** Counts a second as the line of a small picture of this size. */
export function sparkline(counts: number[], width: number, height: number): string {
  const most = Math.max(1, ...counts);
  const step = counts.length > 1 ? width / (counts.length - 1) : width;
  return counts.map((count, at) => `${(at * step).toFixed(1)},${(height - (count / most) * height).toFixed(1)}`).join(" ");
}

/** Only pages of the web are linked: the settings might name anything. */
export const linksOf = (dashboards: Record<string, string>): [string, string][] =>
  Object.entries(dashboards).filter(([, url]) => /^https?:\/\//i.test(url));
