/** Asks that wait, where one sees them without the page: in its title, and as notifications while it is hidden. */

import type { AskRecord, SessionState } from "../client/protocol";
import { go } from "../route";

const known = new Set<string>();
let begun = false;

export function announce(open: AskRecord[], sessions: Record<string, SessionState>, page: string): void {
  const title = page ? `${page} · Trunkline` : "Trunkline";
  document.title = open.length > 0 ? `(${open.length}) ${title}` : title;
  const fresh = open.filter((ask) => !known.has(ask.ask));
  for (const ask of fresh) known.add(ask.ask);
  // what waited before the page was opened is on the page
  if (begun && document.hidden && globalThis.Notification?.permission === "granted") {
    for (const ask of fresh) notify(ask, sessions[ask.session]);
  }
  begun = true;
}

function notify(ask: AskRecord, state: SessionState | undefined): void {
  const what = ask.kind === "permission" ? `Allow ${ask.requested.name ?? "a tool"}?` : `A ${ask.kind} waits`;
  const shown = new Notification(what, { body: state?.title ?? "", tag: ask.ask, icon: "/icon.svg" });
  shown.onclick = () => {
    window.focus();
    go(`/session/${ask.session}`);
    shown.close();
  };
}
