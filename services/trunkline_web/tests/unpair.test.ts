/** Whether a host was told that a browser leaves it. */

import { ConnectionLostError, TrunklineError } from "trunkline-client";
import { expect, test } from "vitest";
import type { Line } from "../src/client/connection";
import { unpair } from "../src/client/device";

const closed = (reason: string): Error =>
  Object.assign(new TrunklineError("closed", "lost"), { cause: new ConnectionLostError(reason) });

test.each([
  { what: "answers", error: undefined, told: true },
  { what: "ends the connection as revoked before its answer", error: closed("revoked"), told: true },
  { what: "is lost", error: closed("the connection broke"), told: false },
  { what: "does not answer", error: new TrunklineError("timeout", "no answer"), told: false },
])("a host that $what", async ({ error, told }) => {
  const asked: unknown[] = [];
  const request = async (...call: unknown[]): Promise<unknown> => {
    asked.push(call);
    if (error) throw error;
    return {};
  };
  expect(await unpair({ hello: { device: "dev_1" }, request } as unknown as Line)).toBe(told);
  expect(asked).toEqual([["device.revoke", { id: "dev_1" }, 5_000]]);
});

test("without a connection nobody is told", async () => {
  expect(await unpair({ hello: undefined } as unknown as Line)).toBe(false);
});
