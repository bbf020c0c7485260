import { describe, expect, test } from "vitest";
import { HEIGHT, layout, WIDTH } from "../src/model/layout";
import { askerOf, columnsOf, currentTask, merged, placed, teamPath, threadsOf, type Member, type Message, type Task } from "../src/model/team";

const task = (id: string, more: Partial<Task> = {}): Task => ({ id, status: "pending", created: "", updated: "", ...more });
const member = (name: string, more: Partial<Member> = {}): Member => ({ name, status: "active", joined: "", updated: "", ...more });
const said = (event: string, from: string, to?: string): Message => ({ event, time: event, from, ...(to && { to }) });

describe("tasks", () => {
  const tasks = [
    task("1", { status: "completed", blocks: ["2"] }),
    task("2"),
    task("3", { blocked_by: ["1", "2", "gone"] }),
    task("4", { status: "in_progress", owner: "ann", blocked_by: ["3"] }),
  ];

  test("a dependency counts whichever side names it; what is gone hinders nothing", () => {
    const found = placed(tasks);
    expect(found.map((one) => [one.task.id, one.column, one.after, one.before, one.waits])).toEqual([
      ["1", "completed", [], ["2", "3"], []],
      ["2", "ready", ["1"], ["3"], []],
      ["3", "blocked", ["1", "2"], ["4"], ["2"]],
      ["4", "in_progress", ["3"], [], ["3"]],
    ]);
    expect(columnsOf(found).map((one) => [one.column, one.tasks.map(({ task }) => task.id)])).toEqual([
      ["ready", ["2"]],
      ["blocked", ["3"]],
      ["in_progress", ["4"]],
      ["completed", ["1"]],
    ]);
    expect(currentTask(member("ann"), tasks)?.id).toBe("4");
    expect(currentTask(member("bob"), tasks)).toBeUndefined();
  });

  test("they are drawn from the top down, with a line for each dependency", () => {
    const drawn = layout(placed(tasks));
    const y = Object.fromEntries(drawn.nodes.map((node) => [node.id, node.y]));
    expect(y["1"]! + HEIGHT).toBeLessThan(y["2"]!);
    expect(y["2"]! + HEIGHT).toBeLessThan(y["3"]!);
    expect(y["3"]! + HEIGHT).toBeLessThan(y["4"]!);
    expect(drawn.edges.map((edge) => `${edge.from}-${edge.to}`).sort()).toEqual(["1-2", "1-3", "2-3", "3-4"]);
    expect(drawn.edges.every((edge) => /^M[\d.]+ [\d.]+ [QL]/.test(edge.path))).toBe(true);
    expect(drawn.cycles).toEqual([]);
  });

  test("cycles are drawn and named, and no two tasks lie over each other", () => {
    const round = [
      task("1", { blocked_by: ["3"] }),
      task("2", { blocked_by: ["1"] }),
      task("3", { blocked_by: ["2"] }),
      task("4", { blocked_by: ["4"] }),
      ...["5", "6", "7", "8", "9"].map((id) => task(id)),
    ];
    const drawn = layout(placed(round));
    expect(drawn.cycles).toContainEqual(["1", "2", "3"]);
    expect(drawn.cycles).toContainEqual(["4"]);
    expect(drawn.nodes).toHaveLength(9);
    for (const one of drawn.nodes) {
      for (const other of drawn.nodes) {
        if (one !== other) expect(Math.abs(one.x - other.x) >= WIDTH || Math.abs(one.y - other.y) >= HEIGHT).toBe(true);
      }
    }
    expect(layout([])).toMatchObject({ nodes: [], edges: [], cycles: [] });
  });
});

describe("messages", () => {
  test("are threads of two, and of one to all; the latest first", () => {
    const found = threadsOf([said("1", "ann", "lead"), said("2", "bob"), said("3", "lead", "ann"), said("4", "bob", "lead")]);
    expect(found.map((one) => [one.who, one.messages.map(({ event }) => event)])).toEqual([
      [["bob", "lead"], ["4"]],
      [["ann", "lead"], ["1", "3"]],
      [["bob"], ["2"]],
    ]);
  });

  test("pages that overlap are put together", () => {
    const page = merged([said("1", "a"), said("2", "a")], [said("2", "a"), said("3", "a")]);
    expect(page.map(({ event }) => event)).toEqual(["1", "2", "3"]);
  });
});

test("an ask is of the member whose session or lane it is of, else of the lead", () => {
  const team = { lead: "ses_l", members: [member("ann", { session: "ses_a" }), member("bob", { lane: "itm_b" })] };
  expect(askerOf({ session: "ses_a" }, team)).toBe("ann");
  expect(askerOf({ session: "ses_l", lane: "itm_b" }, team)).toBe("bob");
  expect(askerOf({ session: "ses_l", lane: "itm_x" }, team)).toBe("lead");
  expect(askerOf({ session: "ses_l" }, team)).toBe("lead");
});

test("a team's page has its id as its path, whatever its name has in it", () => {
  expect(teamPath("ses_1/a b?#")).toBe("/team/ses_1/a%20b%3F%23");
});
