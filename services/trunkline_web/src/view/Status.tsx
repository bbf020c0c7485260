import type { SessionState } from "../client/protocol";
import { closing } from "../model/closing";

const WORDS: Record<string, string> = {
  starting: "starting",
  idle: "idle",
  running: "running",
  waiting: "waits for you",
  interrupting: "stopping",
  compacting: "compacting",
  authenticating: "signing in",
  retrying: "retrying",
  stalled: "stalled",
  stopped: "asleep",
  degraded: "degraded",
  archived: "archived",
  closed: "closed",
};

/** One of a few looks for the many statuses: what needs somebody, what goes on, what is over. */
export function toneOf(state: SessionState): "ask" | "busy" | "bad" | "rest" {
  if (state.open_asks.length > 0 || state.status === "waiting") return "ask";
  if (["stalled", "degraded", "retrying"].includes(state.status)) return "bad";
  if (state.closed) return closing(state.closed).bad ? "bad" : "rest";
  if (state.status === "idle" && state.last_turn?.outcome === "error") return "bad";
  if (["running", "starting", "interrupting", "compacting", "authenticating"].includes(state.status)) return "busy";
  return "rest";
}

export function wordOf(state: SessionState): string {
  if (state.closed) return "closed";
  if (state.open_asks.length > 0) return WORDS.waiting as string;
  if (state.status === "idle" && state.last_turn?.outcome === "error") return "failed";
  if (state.status === "retrying" && state.retry?.attempt) return `retrying (${state.retry.attempt})`;
  return WORDS[state.status] ?? state.status;
}

export function Status(props: { state: SessionState }) {
  return (
    <span class="status" data-tone={toneOf(props.state)}>
      <span class="dot" aria-hidden="true" />
      {wordOf(props.state)}
    </span>
  );
}
