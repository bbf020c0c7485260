/** Where the app is: the page's path, kept in the browser's history. */

import { createSignal } from "solid-js";

export type Route =
  | { page: "home" }
  | { page: "workspace"; id: string }
  | { page: "session"; id: string; at?: string }
  | { page: "terminal"; id: string }
  | { page: "team"; id: string }
  | { page: "overview" }
  | { page: "asks" }
  | { page: "new"; cwd?: string };

/** The route of a path with its query. What is none is the first page. */
export function parse(path: string): Route {
  const url = new URL(path, "http://here");
  const [, first, id, ...rest] = url.pathname.split("/");
  switch (first) {
    case "workspace":
      return id ? { page: "workspace", id } : { page: "home" };
    case "session":
      return id ? { page: "session", id, at: url.searchParams.get("at") ?? undefined } : { page: "home" };
    case "terminal":
      return id ? { page: "terminal", id } : { page: "home" };
    case "team":
      return id ? { page: "team", id: [id, ...rest].map(plain).join("/") } : { page: "home" };
    case "overview":
      return { page: "overview" };
    case "asks":
      return { page: "asks" };
    case "new":
      return { page: "new", cwd: url.searchParams.get("cwd") ?? undefined };
    default:
      return { page: "home" };
  }
}

function plain(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const here = () => location.pathname + location.search;
const same = (one: Route, other: Route): boolean => JSON.stringify(one) === JSON.stringify(other);
/** The same object for as long as one stays where one is: what is shown there stays, too. */
const [route, setRoute] = createSignal<Route>(parse(here()), { equals: same });
export { route };
addEventListener("popstate", () => setRoute(parse(here())));

/** Goes to a page; with `instead` the one that is left is none to come back to. */
export function go(to: string, instead = false): void {
  if (to !== here()) {
    if (instead) history.replaceState(history.state, "", to);
    else history.pushState({ inside: true }, "", to);
  }
  setRoute(parse(here()));
}

/** A click on a link of ours stays in the page; with a modifier key the browser does what it does. */
export function onLink(event: MouseEvent): void {
  const link = (event.target as Element).closest?.("a");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
  event.preventDefault();
  // an arrow back goes to where one came from, and its address is for who came from elsewhere
  if (link.classList.contains("back") && history.state?.inside) return history.back();
  const place = link.hash && link.pathname + link.search === here() && document.getElementById(link.hash.slice(1));
  if (place) place.focus();
  else go(link.pathname + link.search);
}
