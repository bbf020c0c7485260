/** Sessions as a list shows them. */

import type { SessionState } from "../client/protocol";
import type { TeamSummary } from "./team";

export interface Entry {
  team?: TeamSummary;
  sessions: SessionState[];
}

/** Sessions in their order; those of a team are one entry, where the first of them stands, its lead before the others. */
export function entriesOf(states: SessionState[], teams: TeamSummary[]): Entry[] {
  const entries: Entry[] = [];
  const known = new Map<string, Entry>();
  for (const state of states) {
    const team = teams.find((one) => one.sessions.includes(state.session));
    const entry = team && known.get(team.id);
    if (entry !== undefined) entry.sessions.push(state);
    else {
      const made: Entry = { ...(team && { team }), sessions: [state] };
      entries.push(made);
      if (team !== undefined) known.set(team.id, made);
    }
  }
  for (const { team, sessions } of entries) {
    if (team) sessions.sort((a, b) => Number(b.session === team.lead) - Number(a.session === team.lead));
  }
  return entries;
}
