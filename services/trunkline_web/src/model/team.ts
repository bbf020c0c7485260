/** A team's board as the gateway tells it, and how a page groups it. Nothing is folded here. */

import type { BoardMessage, BoardTask, TeamMember, TeamNow, TeamRequest, TeamSummary } from "trunkline-client";
import type { AskRecord, Usage } from "../client/protocol";

export type { TeamRequest, TeamSummary };
export type Message = BoardMessage;
/** The gateway always tells the status of both. */
export type Member = TeamMember & { status: NonNullable<TeamMember["status"]> };
export type Task = BoardTask & { status: NonNullable<BoardTask["status"]> };
export type Team = Omit<TeamNow, "members" | "tasks"> & { members: Member[]; tasks: Task[] };

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
    const who = one.to ? [one.from, one.to].sort() : [one.from];
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
      member.session === ask.session || (ask.session === team.lead && member.lane && member.lane === ask.lane),
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
