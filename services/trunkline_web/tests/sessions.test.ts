import { expect, test } from "vitest";
import type { SessionState } from "../src/client/protocol";
import { entriesOf } from "../src/model/sessions";
import type { TeamSummary } from "../src/model/team";

const state = (session: string) => ({ session }) as SessionState;
const team = (id: string, lead: string, sessions: string[]) => ({ id, lead, sessions }) as TeamSummary;

test("the sessions of a team stand together, where the latest of them stands, the lead first", () => {
  const states = ["a", "member", "b", "lead", "c"].map(state);
  const entries = entriesOf(states, [team("lead/lab", "lead", ["lead", "member", "elsewhere"]), team("x/y", "x", ["x"])]);
  expect(entries.map((entry) => [entry.team?.id, entry.sessions.map((one) => one.session)])).toEqual([
    [undefined, ["a"]],
    ["lead/lab", ["lead", "member"]],
    [undefined, ["b"]],
    [undefined, ["c"]],
  ]);
});
