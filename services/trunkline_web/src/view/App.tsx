import { createEffect, createSignal, ErrorBoundary, lazy, Match, on, onCleanup, Show, Suspense, Switch } from "solid-js";
import { shortPath, visible } from "../model/format";
import { route, onLink, type Route } from "../route";
import { hello, link, may, openAsks, say, sessions, signOut, toast, world } from "../store/world";
import { change, install, installable, isNewer } from "../store/installed";
import { Broken } from "./Broken";
import { ConnectionBar } from "./ConnectionBar";
import { Dialog } from "./Dialog";
import { Icon } from "./Icon";
import { Inbox } from "./Inbox";
import { NewSession } from "./NewSession";
import { SessionList } from "./SessionList";
import { Session } from "./Session";
import { SignIn } from "./SignIn";
import { Unreached } from "./Unreached";
import { Workspace } from "./Workspace";
import { announce } from "./announce";

const Terminal = lazy(() => import("./Terminal").then(({ Terminal }) => ({ default: Terminal })));
const Team = lazy(() => import("./Team").then(({ Team }) => ({ default: Team })));
const Overview = lazy(() => import("./Overview").then(({ Overview }) => ({ default: Overview })));
const TOAST_MS = 8_000;

export function App() {
  createEffect(() => announce(openAsks(), world.sessions, titleOf(route()), world.loaded));
  const signedOut = () => {
    const now = link();
    return now.state === "signed_out" ? now : undefined;
  };
  return (
    <Show when={!signedOut()} fallback={<SignIn why={signedOut()?.why ?? ""} />}>
      <Show when={hello()} fallback={<Unreached />}>
        <Signed />
      </Show>
    </Show>
  );
}

function Signed() {
  const page = () => route().page;
  const inside = () => page() === "session" || page() === "terminal" || page() === "team";
  /** On a phone the list is the page itself. */
  const isList = () => narrow() && (page() === "home" || page() === "workspace");
  // What had the keyboard may be gone, or hidden, with the page before: the new one has it then.
  createEffect(
    on(
      route,
      () =>
        requestAnimationFrame(() => {
          const now = document.activeElement;
          if (now !== null && now !== document.body && now.getClientRects().length > 0) return;
          document.getElementById(isList() ? "list" : "main")?.focus({ preventScroll: true });
        }),
      { defer: true },
    ),
  );
  return (
    <div class="app" data-page={page()} data-inside={inside() ? "" : undefined} onClick={onLink}>
      <a class="skip" href={isList() ? "#list" : "#main"}>
        To the content
      </a>
      <aside id="list" tabindex="-1" role={isList() ? "main" : undefined}>
        <header class="brand">
          <a href="/" class="name">
            <img src="/icon.svg" alt="" width="24" height="24" />
            Trunkline
          </a>
          <a href="/asks" class="button inbox-link" aria-current={page() === "asks" ? "page" : undefined}>
            <Icon name="inbox" />
            <span class="visually-hidden">Waiting for you</span>
            <Badge />
          </a>
          <Show when={may("participant")}>
            <a href="/new" class="button primary" aria-label="New session">
              <Icon name="plus" />
            </a>
          </Show>
        </header>
        <SessionList current={sessionOf() ?? teamOf()} workspace={workspaceOf()} />
        <footer>
          <ConnectionBar />
          <Show when={installable()}>
            <button type="button" class="quiet" onClick={() => void install()} aria-label="Install the app" title="Install the app">
              <Icon name="install" />
            </button>
          </Show>
          <Show when={may("owner")}>
            <a class="button quiet" href="/overview" aria-label="Overview" title="Overview" aria-current={page() === "overview" ? "page" : undefined}>
              <Icon name="chart" />
            </a>
          </Show>
          <button type="button" class="quiet" onClick={() => void signOut()} aria-label="Sign out" title="Sign out">
            <Icon name="out" />
          </button>
        </footer>
      </aside>
      <main id="main" tabindex="-1">
        <Show when={link().state !== "open"}>
          <ConnectionBar />
        </Show>
        <ErrorBoundary fallback={(error, again) => <Broken error={error} again={again} />}>
          <Switch fallback={<Welcome />}>
            <Match when={sessionRoute()} keyed>
              {(one) => <Session id={one.id} at={one.at} />}
            </Match>
            <Match when={terminalRoute()} keyed>
              {(id) => (
                <Suspense>
                  <Terminal id={id} />
                </Suspense>
              )}
            </Match>
            <Match when={teamOf()} keyed>
              {(id) => (
                <Suspense>
                  <Team id={id} />
                </Suspense>
              )}
            </Match>
            <Match when={workspaceOf()} keyed>
              {(id) => <Workspace id={id} />}
            </Match>
            <Match when={page() === "overview"}>
              <Suspense>
                <Overview />
              </Suspense>
            </Match>
            <Match when={page() === "asks"}>
              <Inbox />
            </Match>
            <Match when={page() === "new"}>
              <NewSession cwd={cwdOf()} />
            </Match>
          </Switch>
        </ErrorBoundary>
      </main>
      <nav class="tabs" aria-label="Main">
        <a href="/" aria-current={page() === "home" || page() === "workspace" ? "page" : undefined}>
          <Icon name="list" />
          Sessions
        </a>
        <a href="/asks" aria-current={page() === "asks" ? "page" : undefined}>
          <Icon name="inbox" />
          Waiting
          <Badge />
        </a>
        <Show when={may("participant")}>
          <a href="/new" aria-current={page() === "new" ? "page" : undefined}>
            <Icon name="plus" />
            New
          </a>
        </Show>
      </nav>
      <Show when={isNewer()}>
        <p class="toast newer" role="status">
          <span>A new version of the app is here.</span>
          <button type="button" onClick={() => change()}>
            Reload
          </button>
        </p>
      </Show>
      <Toast />
      <Dialog />
    </div>
  );
}

const PHONE = matchMedia("(max-width: 860px)");
const [narrow, setNarrow] = createSignal(PHONE.matches);
PHONE.addEventListener("change", () => setNarrow(PHONE.matches));

/** What the browser's tab and history call a page. */
function titleOf(now: Route): string {
  switch (now.page) {
    case "session":
      return world.sessions[now.id]?.title ?? "";
    case "terminal":
      return `Terminal: ${world.sessions[now.id]?.title ?? now.id}`;
    case "team":
      return `Team ${visible(now.id.split("/").at(-1) ?? "")}`;
    case "workspace":
      return visible(shortPath(sessions().find((one) => one.workspace === now.id)?.cwd, 40));
    case "overview":
      return "Overview";
    case "asks":
      return "Waiting for you";
    case "new":
      return "New session";
    case "home":
      return "";
  }
}

const sessionOf = () => {
  const now = route();
  return now.page === "session" || now.page === "terminal" ? now.id : undefined;
};
const workspaceOf = () => {
  const now = route();
  return now.page === "workspace" ? now.id : undefined;
};
const terminalRoute = () => {
  const now = route();
  return now.page === "terminal" ? now.id : undefined;
};
const teamOf = () => {
  const now = route();
  return now.page === "team" ? now.id : undefined;
};
const cwdOf = () => {
  const now = route();
  return now.page === "new" ? now.cwd : undefined;
};
const sessionRoute = () => {
  const now = route();
  return now.page === "session" ? now : undefined;
};

function Badge() {
  return (
    <Show when={openAsks().length > 0}>
      <span class="badge">
        {openAsks().length}
        <span class="visually-hidden"> asks wait</span>
      </span>
    </Show>
  );
}

function Welcome() {
  return (
    <div class="empty welcome">
      <img src="/icon.svg" alt="" width="72" height="72" />
      <p>{may("participant") ? "Choose a session, or start one." : "Choose a session."}</p>
      <Show when={may("participant")}>
        <a class="button primary" href="/new">
          New session
        </a>
      </Show>
    </div>
  );
}

function Toast() {
  const [shown, setShown] = createSignal("");
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(
    on(toast, (words) => {
      clearTimeout(timer);
      setShown(words);
      if (words) timer = setTimeout(() => say(""), TOAST_MS);
    }),
  );
  onCleanup(() => clearTimeout(timer));
  return (
    <div class="toast" role="alert" hidden={!shown()}>
      <span>{shown()}</span>
      <button type="button" aria-label="Dismiss" onClick={() => say("")}>
        <Icon name="cross" />
      </button>
    </div>
  );
}
