import { expect, test } from "vitest";
import { delayOf } from "../src/client/backoff";
import { begin, lay } from "../src/model/writing";

// Rules of the model client (trunkline_testkit/model_client.py), each with its result written by hand.
test.each([
  ["appended where the known text ends", [0, "ab"], [2, "cd"], [0, "abcd"]],
  ["laid over what it overlaps, which never gets shorter", [0, "abcdef"], [2, "XY"], [0, "abXYef"]],
  ["the whole block so far", [0, "ab"], [0, "abcd"], [0, "abcd"]],
  ["beyond the end: what is known is that piece alone", [0, "ab"], [5, "fg"], [5, "fg"]],
  ["before what is known, and joined to it", [5, "fg"], [2, "cde"], [2, "cdefg"]],
  ["ends before what is known begins: of no use", [5, "fg"], [1, "bc"], [5, "fg"]],
  ["offsets are code points", [0, "a😀"], [2, "b"], [0, "a😀b"]],
] as const)("%s", (_, [at, text], [then, piece], [start, whole]) => {
  const laid = lay(begin(at, text), then, piece);
  expect([laid.at, laid.text, laid.length]).toEqual([start, whole, [...whole].length]);
});

test("waits 1, 2, 4, 8, 16 and then 30 seconds", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 50].map(delayOf)).toEqual([1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
});
