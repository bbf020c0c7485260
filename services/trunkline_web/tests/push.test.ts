import { expect, test, vi } from "vitest";
import SOURCE from "../src/sw.js?raw";

const TOLD = { title: "Allow Bash?", body: "shop", path: "/session/ses_1", ask: "ask_1" };

/** The service worker with pages that are open: what it shows when a push message comes. */
async function pushed(data: unknown, pages: string[]): Promise<unknown[][]> {
  const listeners = new Map<string, (event: object) => void>();
  const showNotification = vi.fn(async () => undefined);
  const worker = {
    addEventListener: (type: string, listener: (event: object) => void) => listeners.set(type, listener),
    clients: { matchAll: async () => pages.map((visibilityState) => ({ visibilityState })) },
    registration: { showNotification },
  };
  new Function("self", "BUILD", "FILES", SOURCE)(worker, "build", []);
  let until: Promise<unknown> | undefined;
  const event = { data: data === null ? null : { json: () => data }, waitUntil: (all: Promise<unknown>) => (until = all) };
  listeners.get("push")?.(event);
  await until;
  return showNotification.mock.calls;
}

test("a push message is a notification like the page's own", async () => {
  const options = { body: "shop", tag: "ask_1", icon: "/icon-192.png", data: { path: "/session/ses_1" } };
  expect(await pushed(TOLD, [])).toEqual([["Allow Bash?", options]]);
  expect(await pushed(TOLD, ["hidden"])).toEqual([["Allow Bash?", options]]);
});

test("it is silent while the app is looked at, and where nothing is said", async () => {
  expect(await pushed(TOLD, ["hidden", "visible"])).toEqual([]);
  expect(await pushed(null, [])).toEqual([]);
});
