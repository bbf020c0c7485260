import type { SessionState } from "../client/protocol";

/**
 * Whether a session has a terminal to look at. An agent that is spoken with in its own protocol, in a conversation of its own, has
 * one only where it was handed over to it.
 */
export function showsTerminal(state: Pick<SessionState, "capabilities" | "interface" | "native_session" | "terminal">): boolean {
  if (state.terminal || state.interface === "terminal") return true;
  return state.capabilities?.terminal === true && !state.native_session;
}
