/** A team's board as the gateway tells it, and how a page groups it. Nothing is folded here. */

import type { AskRecord, Usage } from "../client/protocol";

export interface Member {
  name: string;
  status: "active" | "idle" | "shutdown";
  joined: string;
  updated: string;
  kind?: "teammate" | "subagent";
  type?: string;
  model?: string;
  session?: string;
  lane?: string;
  usage?: Usage;
}

export interface Task {
  id: string;
  status: "pending" | "in_progress" | "completed";
  created: string;
  updated: string;
  subject?: string;
  description?: string;
  owner?: string;
  active_form?: string;
  blocks?: string[];
  blocked_by?: string[];
  by?: string;
}

export interface Message {
  event: string;
  time: string;
  from: string;
  to?: string;
  summary?: string;
  content?: string;
}

/** What a member waits for: an answer of the lead, not of people. `approve` absent: it is open. */
export interface TeamRequest {
  request: string;
  kind: "shutdown" | "plan" | "permission";
  member: string;
  asked?: string;
  reason?: string;
  plan?: string;
  tool?: string;
  input?: unknown;
  approve?: boolean;
  answered?: string;
  feedback?: string;
}

export interface TeamSummary {
  id: string;
  team: string;
  lead: string;
  sessions: string[];
  description?: string | null;
  created: string;
  updated: string;
  ended?: string | null;
  members: Record<string, Member["status"]>;
  tasks: Record<string, number>;
  open_requests: number;
  open_asks: number;
  usage: Usage;
}

export interface Team extends Omit<TeamSummary, "members" | "tasks"> {
  members: Member[];
  tasks: Task[];
  requests: TeamRequest[];
  answered: TeamRequest[];
  rest: Record<string, number>;
}

export type Column = "ready" | "blocked" | "in_progress" | "completed";
export const COLUMNS: Record<Column, string> = {
  ready: "Ready",
  blocked: "Blocked",
  in_progress: "In progress",
  completed: "Completed",
};

/** A task with what it waits for and what waits for it, by the tasks that are there. */
export interface Placed {
  task: Task;
  column: Column;
  after: string[];
  before: string[];
  /** Those of `after` that are not completed. */
  waits: string[];
}

/** The tasks in their order. Either side may name a dependency; tasks that are gone hinder nothing. */
export function placed(tasks: Task[]): Placed[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const after = new Map(tasks.map((task) => [task.id, new Set((task.blocked_by ?? []).filter((id) => byId.has(id)))]));
  for (const task of tasks) for (const id of task.blocks ?? []) after.get(id)?.add(task.id);
  return tasks.map((task) => {
    const needs = [...(after.get(task.id) ?? [])];
    const waits = needs.filter((id) => byId.get(id)?.status !== "completed");
    const before = tasks.filter((other) => after.get(other.id)?.has(task.id)).map((other) => other.id);
    const column = task.status === "pending" ? (waits.length > 0 ? "blocked" : "ready") : task.status;
    return { task, column, after: needs, before, waits };
  });
}

export function columnsOf(tasks: Placed[]): { column: Column; name: string; tasks: Placed[] }[] {
  return (Object.keys(COLUMNS) as Column[]).map((column) => ({
    column,
    name: COLUMNS[column],
    tasks: tasks.filter((one) => one.column === column),
  }));
}

export interface Thread {
  key: string;
  /** Two names; one, if it is said to all. */
  who: string[];
  messages: Message[];
}

/** Who talks with whom, the thread with the latest message first; what one says to all is a thread of its own. */
export function threadsOf(messages: Message[]): Thread[] {
  const threads = new Map<string, Thread>();
  for (const one of messages) {
    const who = one.to === undefined ? [one.from] : [one.from, one.to].sort();
    const key = JSON.stringify(who);
    const known = threads.get(key);
    if (known === undefined) threads.set(key, { key, who, messages: [one] });
    else known.messages.push(one);
  }
  const last = (thread: Thread) => thread.messages.at(-1)?.time ?? "";
  return [...threads.values()].sort((a, b) => last(b).localeCompare(last(a)));
}

/** Older and newer pages as one, each message once, in the order of the log. */
export function merged(older: Message[], newer: Message[]): Message[] {
  const there = new Set(newer.map((one) => one.event));
  return [...older.filter((one) => !there.has(one.event)), ...newer];
}

/** What a member works on. */
export const currentTask = (member: Member, tasks: Task[]): Task | undefined =>
  tasks.findLast((task) => task.owner === member.name && task.status === "in_progress");

/** Who of the team asks; the lead, if no member does. */
export function askerOf(ask: Pick<AskRecord, "session" | "lane">, team: Pick<Team, "lead" | "members">): string {
  const found = team.members.find(
    (member) =>
      (member.session !== undefined && member.session === ask.session) ||
      (ask.session === team.lead && member.lane !== undefined && member.lane === ask.lane),
  );
  return found?.name ?? "lead";
}

/** The tokens that went in, those read from the cache too. */
export const tokensIn = (usage: Usage | undefined | null): number =>
  (usage?.input ?? 0) + (usage?.cache_read ?? 0) + (usage?.cache_write ?? 0);

/** How many of a team's members are not shut down, and how many of its tasks are done. */
export function progress(team: TeamSummary): { here: number; active: number; done: number; tasks: number } {
  const statuses = Object.values(team.members);
  const tasks = Object.values(team.tasks).reduce((sum, one) => sum + one, 0);
  return {
    here: statuses.filter((status) => status !== "shutdown").length,
    active: statuses.filter((status) => status === "active").length,
    done: team.tasks.completed ?? 0,
    tasks,
  };
}

/** The path of a team's page. Its id is the lead's session and the name. */
export const teamPath = (id: string): string => `/team/${id.split("/").map(encodeURIComponent).join("/")}`;
