import { beforeEach, expect, test, vi } from "vitest";

const KEY = "BAEC_w"; // of the bytes 4, 1, 2, 255
const line = vi.hoisted(() => ({ calls: [] as unknown[][], device: "dev_1" as string | null, role: true }));

vi.mock("../src/store/world", () => ({
  connection: {
    call: async (...call: unknown[]) => {
      line.calls.push(call);
      return { key: KEY };
    },
  },
  hello: () => ({ device: line.device }),
  may: () => line.role,
  onConnected: () => undefined,
  onLeaving: () => undefined,
}));

class Subscription {
  ended = false;
  readonly options: { applicationServerKey: ArrayBuffer };

  constructor(
    readonly endpoint: string,
    key: number[],
  ) {
    this.options = { applicationServerKey: new Uint8Array(key).buffer };
  }

  toJSON() {
    return { endpoint: this.endpoint, expirationTime: null, keys: { p256dh: "p", auth: "a" } };
  }

  async unsubscribe() {
    this.ended = true;
  }
}

let held: Subscription | null;
let wanted: object[];

/** The module as a new page has it. */
async function page() {
  vi.resetModules();
  return import("../src/store/push");
}

beforeEach(() => {
  Object.assign(line, { calls: [], device: "dev_1", role: true });
  held = null;
  wanted = [];
  const pushManager = {
    getSubscription: async () => (held?.ended ? null : held),
    subscribe: async (options: object) => {
      wanted.push(options);
      held = new Subscription("https://push.example.org/new", [4, 1, 2, 255]);
      return held;
    },
  };
  const registration = { pushManager };
  vi.stubGlobal("navigator", { serviceWorker: { getRegistration: async () => registration, ready: Promise.resolve(registration) } });
  vi.stubGlobal("Notification", { permission: "granted" });
});

const told = (endpoint: string) => ["device.push", { subscription: { endpoint, keys: { p256dh: "p", auth: "a" } } }];

test("a browser that may notify subscribes, and says so once a page", async () => {
  const { subscribe } = await page();
  await subscribe();
  await subscribe();
  expect(wanted).toEqual([{ userVisibleOnly: true, applicationServerKey: KEY }]);
  expect(line.calls).toEqual([["push.key"], told("https://push.example.org/new"), ["push.key"]]);
});

test("a subscription for this host stays, one for another key is made anew", async () => {
  held = new Subscription("https://push.example.org/old", [4, 1, 2, 255]);
  await (await page()).subscribe();
  expect(line.calls.at(-1)).toEqual(told("https://push.example.org/old"));
  const old = (held = new Subscription("https://push.example.org/old", [4, 9, 9, 9]));
  await (await page()).subscribe();
  expect(old.ended).toBe(true);
  expect(line.calls.at(-1)).toEqual(told("https://push.example.org/new"));
});

test("nothing is asked without leave, without a device, or without the right to decide", async () => {
  for (const without of [{ device: null }, { role: false }]) {
    Object.assign(line, { device: "dev_1", role: true }, without);
    await (await page()).subscribe();
  }
  Object.assign(line, { device: "dev_1", role: true });
  vi.stubGlobal("Notification", { permission: "default" });
  await (await page()).subscribe();
  expect([line.calls, wanted]).toEqual([[], []]);
});

test("signing out ends it, here and at the gateway", async () => {
  const { subscribe, unsubscribe } = await page();
  await subscribe();
  await unsubscribe();
  expect(held?.ended).toBe(true);
  expect(line.calls.at(-1)).toEqual(["device.push", { subscription: null }]);
});
