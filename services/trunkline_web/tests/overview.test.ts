import { expect, test } from "vitest";
import { kindsOf, linksOf, sparkline } from "../src/model/overview";

test("statuses are counted in few kinds, and none is lost", () => {
  const kinds = kindsOf({ waiting: 2, running: 1, compacting: 1, failed: 1, idle: 4, closed: 3, novel: 5 });
  expect(kinds.map((kind) => [kind.name, kind.many])).toEqual([
    ["Waiting for you", 2],
    ["Running", 2],
    ["Stalled", 0],
    ["Failed", 1],
    ["Idle", 4],
    ["Over", 3],
    ["novel", 5],
  ]);
});

test("a line of counts fills its picture, and one of nothing is flat", () => {
  expect(sparkline([0, 5, 10], 100, 20)).toBe("0.0,20.0 50.0,10.0 100.0,0.0");
  expect(sparkline([0, 0], 10, 4)).toBe("0.0,4.0 10.0,4.0");
});

test("dashboards are links of the web and nothing else", () => {
  expect(linksOf({ Grafana: "https://example.org/d", Bad: "javascript:alert(1)" })).toEqual([["Grafana", "https://example.org/d"]]);
});
