/**
 * Asks that wait, where one sees them without the page: in its title, on the app's icon, and as notifications while it is
 * hidden. A notification goes when its ask has ended, whoever decided it.
 */

import type { AskRecord, SessionState } from "../client/protocol";
import { go } from "../route";

const known = new Set<string>();
/** Notifications by ask, where the page shows them itself; elsewhere the service worker has them. */
const shown = new Map<string, Notification>();
let begun = false;
let cleaned = false;

export function announce(open: AskRecord[], sessions: Record<string, SessionState>, page: string, loaded: boolean): void {
  const title = page ? `${page} · Trunkline` : "Trunkline";
  document.title = open.length > 0 ? `(${open.length}) ${title}` : title;
  badge(open.length);
  const ids = new Set(open.map((ask) => ask.ask));
  const fresh = open.filter((ask) => !known.has(ask.ask));
  const over = [...known].filter((id) => !ids.has(id));
  for (const ask of fresh) known.add(ask.ask);
  for (const id of over) known.delete(id);
  if (globalThis.Notification?.permission === "granted") {
    // what waited before the page was opened is on the page
    if (begun && document.hidden) for (const ask of fresh) void notify(ask, sessions[ask.session]);
    if (over.length > 0) void withdraw((ask) => over.includes(ask));
    // what was pushed while no page was open may be over by now
    if (loaded && !cleaned) void withdraw((ask) => !known.has(ask));
    cleaned ||= loaded;
  }
  begun = true;
}

function badge(many: number): void {
  if (!("setAppBadge" in navigator)) return;
  const set = many > 0 ? navigator.setAppBadge(many) : navigator.clearAppBadge();
  set.catch(() => undefined);
}

const registered = async (): Promise<ServiceWorkerRegistration | undefined> =>
  (await navigator.serviceWorker?.getRegistration()) ?? undefined;

async function notify(ask: AskRecord, state: SessionState | undefined): Promise<void> {
  const what = ask.kind === "permission" ? `Allow ${ask.requested.name ?? "a tool"}?` : `A ${ask.kind} waits`;
  const path = `/session/${ask.session}`;
  const options = { body: state?.title ?? "", tag: ask.ask, icon: "/icon-192.png", data: { path } };
  const registration = await registered();
  if (registration?.active) {
    await registration.showNotification(what, options);
    // it may have ended while that took
    if (!known.has(ask.ask)) await withdraw((one) => one === ask.ask);
    return;
  }
  const made = new Notification(what, options);
  shown.set(ask.ask, made);
  made.onclick = () => {
    window.focus();
    go(path);
    made.close();
  };
}

async function withdraw(over: (ask: string) => boolean): Promise<void> {
  for (const [id, one] of shown) {
    if (!over(id)) continue;
    one.close();
    shown.delete(id);
  }
  for (const one of (await (await registered())?.getNotifications()) ?? []) if (over(one.tag)) one.close();
}
