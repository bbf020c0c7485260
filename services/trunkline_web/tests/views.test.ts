import { describe, expect, test } from "vitest";
import type { AskOption, Requested, SessionState } from "../src/client/protocol";
import { closing } from "../src/model/closing";
import { allow, answers, choose, deny, further } from "../src/model/answers";
import { ago, bytes, count, duration, moment, money, plain, shortPath, visible } from "../src/model/format";
import { counted, linesOf } from "../src/model/lines";
import { showsTerminal } from "../src/model/terminal";
import { changesOf, commandOf, headOf, rulesBy, rulesOf } from "../src/model/tools";

describe("answers", () => {
  const requested: Requested = {
    ask: "a",
    options: [
      { id: "once", name: "Yes", kind: "allow_once" },
      { id: "always", name: "Always", kind: "allow_always" },
      { id: "reject", name: "No", kind: "reject_once" },
      { id: "never", name: "Never", kind: "reject_always" },
    ],
  };

  test("plain answers pick the plain options; the others have buttons of their own", () => {
    expect(allow(requested)).toEqual({ behaviour: "allow", option: "once" });
    expect(deny(requested, " not now ")).toEqual({ behaviour: "deny", option: "reject", message: "not now" });
    expect(further(requested).map(choose)).toEqual([
      { behaviour: "allow", option: "always" },
      { behaviour: "deny", option: "never" },
    ]);
    expect(allow({ ask: "a" }, { command: "ls" })).toEqual({ behaviour: "allow", updated_input: { command: "ls" } });
  });

  test("questions are answered when all of them are", () => {
    const questions = [
      { id: "q1", text: "?", options: [{ label: "yes" }] },
      { id: "q2", text: "?", multiple: true, options: [{ label: "a" }, { label: "b" }] },
    ];
    const first = { q1: { chosen: ["yes"], words: "" } };
    expect(answers(questions, first)).toBeUndefined();
    expect(answers(questions, { ...first, q2: { chosen: ["a", "b"], words: " c " } })).toEqual({
      behaviour: "answered",
      answers: { q1: "yes", q2: ["a", "b", "c"] },
    });
  });
});

describe("tools", () => {
  test("the rules that are written, in words", () => {
    // as in tests/recordings/opencode, and as Claude Code proposes them
    expect(rulesOf(["echo *", "tee *"])).toEqual(["echo *", "tee *"]);
    const rules = [{ toolName: "Bash", ruleContent: "git log:*" }, { toolName: "WebFetch" }];
    expect(rulesOf([{ type: "addRules", behavior: "allow", destination: "session", rules }])).toEqual([
      "Bash(git log:*) (session)",
      "WebFetch (session)",
    ]);
    expect(rulesOf([{ strange: 1 }])).toEqual(['{"strange":1}']);
    expect(rulesOf(undefined)).toEqual([]);
  });

  test("each of several options to allow always writes its own rule, a single one all of them", () => {
    // as in tests/recordings/claude/02-permission-allow, and as OpenCode asks
    const rule = { type: "addRules", destination: "localSettings", rules: [{ toolName: "Bash", ruleContent: "touch a" }] };
    const options = [
      { id: "yes", name: "Yes", kind: "allow_once" as const },
      { id: "suggestion:0", name: "the command", kind: "allow_always" as const },
      { id: "suggestion:1", name: "the mode", kind: "allow_always" as const },
    ];
    const several = { ask: "a", options, suggestions: [rule, { type: "setMode", mode: "acceptEdits", destination: "session" }] };
    expect(options.map((one) => rulesBy(one, several))).toEqual([[], ["Bash(touch a) (localSettings)"], ["mode acceptEdits (session)"]]);
    const [, single] = options;
    expect(rulesBy(single as AskOption, { ask: "a", options: options.slice(0, 2), suggestions: ["echo *", "tee *"] })).toEqual(["echo *", "tee *"]);
  });

  test("commands and changes of an input", () => {
    expect(commandOf({ command: ["git", "log"] })).toBe("git log");
    expect(headOf("Bash", undefined, { command: "a\nb" })).toBe("a");
    expect(changesOf({ file_path: "/a", old_string: "x", new_string: "y" })).toEqual([{ path: "/a", old: "x", new: "y" }]);
    expect(changesOf({ file_path: "/a", edits: [{ old_string: "1", new_string: "2" }, { old_string: "3", new_string: "4" }] })).toHaveLength(2);
    expect(changesOf({ command: "ls" })).toEqual([]);
  });

  test("a change as lines", () => {
    const lines = linesOf({ path: "a", old: "one\ntwo\n", new: "one\n2\n" });
    expect(lines.map(({ sign, text }) => sign + text)).toEqual([" one", "-two", "+2"]);
    const unified = linesOf({ path: "a", old: "", new: "", unified: "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n" });
    expect(unified.map(({ sign, text }) => sign + text)).toEqual(["@@@ -1 +1 @@", "-x", "+y"]);
  });

  test("two texts that have nothing in common are shown one after the other, quickly", () => {
    const old = Array.from({ length: 10_000 }, (_, n) => `old ${n}`).join("\n");
    const fresh = Array.from({ length: 10_000 }, (_, n) => `new ${n}`).join("\n");
    expect(counted(linesOf({ path: "a", old, new: fresh }))).toEqual({ added: 10_000, removed: 10_000 });
  });
});

test("what hides in a text is shown", () => {
  expect(visible("a\u202eb\u200bc\u0007")).toBe("a\\u202eb\\u200bc\\u0007");
  expect(plain("\u001b[31mred\u001b[0m \u001b]0;title\u0007x\n10%\r20%")).toBe("red x\n20%");
});

test("numbers and times in few characters", () => {
  expect([count(999), count(1500), count(15_400), count(2_500_000)]).toEqual(["999", "1.5k", "15k", "2.5M"]);
  expect([bytes(10), bytes(2048), bytes(3 * 1024 * 1024)]).toEqual(["10 B", "2 KB", "3.0 MB"]);
  expect([duration(900), duration(59_000), duration(119_600)]).toEqual(["900 ms", "59.0 s", "2 min 0 s"]);
  expect([money(0.001), money(1.5)]).toEqual(["<$0.01", "$1.50"]);
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect([ago("2026-01-01T23:59:30Z", now), ago("2026-01-01T23:00:00Z", now), ago("2025-12-30T00:00:00Z", now)]).toEqual(["now", "1 h", "3 d"]);
  const noon = Date.parse("2026-06-15T12:00:00Z");
  const then = (days: number) => moment(new Date(noon - days * 86_400_000).toISOString(), noon, "en");
  expect(then(0)).toMatch(/^\d{1,2}:00 [AP]M$/);
  expect(then(2)).toMatch(/^Jun 1[23], \d{1,2}:00/);
  expect(then(365)).toMatch(/^Jun 1[456], 2025, \d/);
  expect(shortPath("/home/me/some/very/long/path/to/project", 20)).toBe("…/path/to/project");
});

test("what was closed as somebody wanted it is no failure", () => {
  expect(closing({ reason: "closed" })).toEqual({ words: "closed", bad: false });
  expect(closing({ reason: "killed", last_error: "Terminated" })).toEqual({ words: "the agent was killed", bad: false });
  expect(closing({ reason: "no longer needed" })).toEqual({ words: "no longer needed", bad: false });
  expect(closing({ reason: "crash_loop" })).toEqual({ words: "the agent ended again and again", bad: true });
  expect(closing({ reason: "agent_not_found", last_error: "no claude here" })).toEqual({ words: "agent_not_found", bad: true });
});

test("an agent that is spoken with in its own protocol has a terminal where it was handed over to it", () => {
  const able = { terminal: true } as SessionState["capabilities"];
  const structured = { capabilities: able, interface: "structured", native_session: "n1", terminal: null } as const;
  expect(showsTerminal(structured)).toBe(false);
  expect(showsTerminal({ ...structured, interface: "terminal" })).toBe(true);
  // a program that has nothing but its screen, running and not
  expect(showsTerminal({ ...structured, native_session: null, terminal: { columns: 80, rows: 24 } as SessionState["terminal"] })).toBe(true);
  expect(showsTerminal({ ...structured, native_session: null })).toBe(true);
  expect(showsTerminal({ ...structured, native_session: null, capabilities: null })).toBe(false);
});
