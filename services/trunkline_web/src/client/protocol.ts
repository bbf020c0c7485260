/** What the gateway tells, by the client's generated types. Unknown fields and types pass: the log may be newer than the page. */

import type {
  Ask,
  BlobRef,
  Gap as Hole,
  KnownEvent,
  MessageUser,
  Hello as Said,
  Opened as Answered,
  PermissionRequested,
  PlanProposed,
  QuestionAsked,
  SessionSetThinkingParams,
  SessionState as State,
  Snapshot as Shot,
} from "trunkline-client";

export type {
  AskOption,
  BlobRef,
  Capabilities,
  Choice,
  ErrorInfo,
  OpenBlock,
  Question,
  Usage,
} from "trunkline-client";

export type Role = Said["role"];

/** How much a model may think. */
export type Thinking = SessionSetThinkingParams["level"];

/** A text that may have been moved to the blob store. */
export type Text = string | BlobRef;

/** A block of content. */
export type Block = MessageUser["content"][number];

/** The envelope of an event. One of a type that this page does not know has another `type` than any of these. */
export type LogEvent = KnownEvent;
export type EventOf<T extends LogEvent["type"]> = Extract<LogEvent, { type: T }>;

/** A state as the gateway tells it: whole. */
export type SessionState = Required<State>;

export type AskRecord = Ask;
/** What is asked, of whatever kind: a permission, a question, a plan. */
export type Requested = Partial<PermissionRequested & QuestionAsked & PlanProposed> & { ask: string };

export interface Snapshot extends Omit<Shot, "state" | "sessions"> {
  state?: SessionState | null;
  sessions?: SessionState[];
}

export type Gap = Hole & { snapshot?: Snapshot };

/** The answer to `subscribe`: from the gateway there is always a cursor. */
export interface Opened extends Omit<Answered, "snapshot" | "gap"> {
  cursor: string;
  snapshot?: Snapshot;
  gap?: Gap;
}

export interface Hello extends Said {
  device?: string | null;
}

export interface Presence {
  client: string;
  actor: string;
  role?: Role;
  program?: string;
  doing: "watching" | "typing";
}

/** The text itself, or the preview of what was moved to the blob store. */
export function textOf(text: Text | null | undefined): string {
  if (text === null || text === undefined) return "";
  return typeof text === "string" ? text : (text.preview ?? "");
}
