import { createEffect, createMemo, createSignal, For, onCleanup, Show } from "solid-js";
import type { SessionState } from "../client/protocol";
import { ago, shortPath, visible } from "../model/format";
import { entriesOf } from "../model/sessions";
import { progress, teamPath, type TeamSummary } from "../model/team";
import { isClosed } from "../client/connection";
import { bring, may, moreSessions, older, say, sessions, world } from "../store/world";
import { now } from "./clock";
import { Icon } from "./Icon";
import { whenLost } from "./keyboard";
import { Status, toneOf } from "./Status";

interface Group {
  workspace: string;
  cwd: string;
  sessions: SessionState[];
}

/** The sessions of each directory, the one with the latest event first. */
export function groupsOf(states: SessionState[]): Group[] {
  const groups = new Map<string, Group>();
  for (const state of states) {
    const workspace = state.workspace ?? "";
    const group = groups.get(workspace) ?? { workspace, cwd: state.cwd ?? "", sessions: [] };
    group.sessions.push(state);
    groups.set(workspace, group);
  }
  return [...groups.values()];
}

/** Whether a session is one that is looked for: by title, directory, agent, id or its latest words. */
export function fits(state: SessionState, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  const shown = [state.title, state.cwd, state.agent, state.adapter, state.session, state.last_text];
  return !wanted || shown.some((text) => text?.toLowerCase().includes(wanted));
}

type Filter = "open" | "waiting" | "running" | "trouble" | "all";
const FILTERS: Record<Filter, string> = {
  open: "Open",
  waiting: "Waiting",
  running: "Running",
  trouble: "Failed or stalled",
  all: "All",
};
const TONES: Partial<Record<Filter, string>> = { waiting: "ask", running: "busy", trouble: "bad" };
const SEARCH_MS = 250;

/** Whether a session is one of those that a filter shows. */
export const passes = (state: SessionState, filter: Filter): boolean =>
  filter === "all" || (!state.archived && (filter === "open" || toneOf(state) === TONES[filter]));

export function SessionList(props: { current?: string; workspace?: string }) {
  const [search, setSearch] = createSignal("");
  const [filter, setFilter] = createSignal<Filter>("open");
  const [looking, setLooking] = createSignal(false);
  const [listing, setListing] = createSignal(false);
  async function list(): Promise<void> {
    setListing(true);
    await moreSessions().catch((error) => isClosed(error) || say(error));
    setListing(false);
  }
  const shown = createMemo(() =>
    sessions().filter(
      (state) =>
        (props.workspace === undefined || state.workspace === props.workspace) &&
        (search() !== "" || passes(state, filter())) &&
        fits(state, search()),
    ),
  );
  const groups = createMemo(() => new Map(groupsOf(shown()).map((group) => [group.workspace, group])));
  let place: HTMLElement | undefined;
  // a line that moves up takes the keyboard along
  whenLost(
    groups,
    () => place,
    (had) => had.focus({ preventScroll: true }),
  );
  const here = createMemo(() => sessions().filter((one) => props.workspace === undefined || one.workspace === props.workspace));
  const many = (one: Filter) => (TONES[one] ? here().filter((state) => passes(state, one)).length : 0);
  // how it is at a glance: what there is none of has no button
  const filters = () => (Object.keys(FILTERS) as Filter[]).filter((one) => !TONES[one] || one === "waiting" || one === filter() || many(one) > 0);
  // the list has the latest sessions only: the gateway looks among all
  createEffect(() => {
    const words = search().trim();
    const { workspace } = props;
    if (!world.loaded || older() === 0 || (!words && workspace === undefined)) return;
    let over = false;
    setLooking(true);
    const timer = setTimeout(() => {
      void bring(words ? { search: words } : { workspace: workspace ?? "" })
        .catch((error) => isClosed(error) || say(error))
        .finally(() => over || setLooking(false));
    }, SEARCH_MS);
    onCleanup(() => {
      over = true;
      clearTimeout(timer);
      setLooking(false);
    });
  });
  return (
    <nav class="sessions" aria-label="Sessions" ref={place}>
      <div class="find">
        <Icon name="search" />
        <input
          type="search"
          placeholder="Search sessions"
          aria-label="Search sessions"
          value={search()}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </div>
      <div class="filters" role="group" aria-label="Which sessions">
        <For each={filters()}>
          {(one) => (
            <button type="button" aria-pressed={filter() === one} onClick={() => setFilter(one)}>
              {FILTERS[one]}
              <Show when={many(one) > 0}>
                <span class="many" data-tone={TONES[one]}>
                  {many(one)}
                </span>
              </Show>
            </button>
          )}
        </For>
      </div>
      <Show when={props.workspace !== undefined}>
        <a class="all" href="/">
          <Icon name="back" />
          All directories
        </a>
      </Show>
      <For each={[...groups().keys()]} fallback={<Nothing filter={filter()} searched={search() !== ""} looking={looking()} />}>
        {(workspace) => <Directory group={groups().get(workspace)} current={props.current} />}
      </For>
      <Show when={older() > 0}>
        <button type="button" class="quiet" disabled={listing()} onClick={() => void list()}>
          {listing() ? "Loading …" : older() === 1 ? "1 older session" : `${older()} older sessions`}
        </button>
      </Show>
    </nav>
  );
}

/** What stands in a directory. Each session keeps its line, wherever it goes and whatever becomes of it: somebody may be on it. */
function Directory(props: { group?: Group; current?: string }) {
  const group = createMemo<Group>((last) => props.group ?? last, { workspace: "", cwd: "", sessions: [] });
  const entries = createMemo(() => entriesOf(group().sessions, world.teams));
  const lines = () => entries().flatMap(({ team, sessions }): (TeamSummary | SessionState)[] => (team ? [team] : sessions));
  const of = (team: TeamSummary) => entries().find((one) => one.team === team)?.sessions ?? [];
  return (
    <section aria-label={group().cwd}>
      <h2 title={group().cwd}>
        <a href={`/workspace/${group().workspace}`}>
          <Icon name="folder" />
          <bdi>{visible(shortPath(group().cwd, 30))}</bdi>
        </a>
        <Show when={may("participant")}>
          <a class="add" href={`/new?cwd=${encodeURIComponent(group().cwd)}`} aria-label={`New session in ${group().cwd}`}>
            <Icon name="plus" />
          </a>
        </Show>
      </h2>
      <ul>
        <For each={lines()}>
          {(one) =>
            "session" in one ? <Item state={one} current={props.current} /> : <Crew team={one} sessions={of(one)} current={props.current} />
          }
        </For>
      </ul>
    </section>
  );
}

/** The sessions of a team, below its name. */
function Crew(props: { team: TeamSummary; sessions: SessionState[]; current?: string }) {
  const so = () => progress(props.team);
  return (
    <li class="crew">
      <a class="item" href={teamPath(props.team.id)} aria-current={props.current === props.team.id ? "page" : undefined}>
        <span class="top">
          <b>
            <Icon name="users" />
            {visible(props.team.team)}
          </b>
        </span>
        <span class="below">
          <span>
            {so().active} of {so().here} active
          </span>
          <span>
            {so().done} of {so().tasks} tasks done
          </span>
        </span>
      </a>
      <ul aria-label={`Sessions of the team ${props.team.team}`}>
        <For each={props.sessions}>{(state) => <Item state={state} current={props.current} />}</For>
      </ul>
    </li>
  );
}

function Item(props: { state: SessionState; current?: string }) {
  return (
    <li>
      <a
        class="item"
        href={`/session/${props.state.session}`}
        aria-current={props.current === props.state.session ? "page" : undefined}
        data-tone={toneOf(props.state)}
      >
        <span class="top">
          <b dir="auto">{props.state.title ?? "New session"}</b>
          <time dateTime={props.state.updated ?? undefined}>{ago(props.state.updated, now())}</time>
        </span>
        <span class="below">
          <Status state={props.state} />
          <span class="agent">{props.state.agent ?? props.state.adapter}</span>
        </span>
        <Show when={props.state.last_text}>
          <span class="last" dir="auto">
            {props.state.last_text?.slice(0, 160).replace(/[*_`#]+/g, "")}
          </span>
        </Show>
      </a>
    </li>
  );
}

const NOTHING: Record<Filter, string> = {
  open: "No session is here yet.",
  waiting: "No session waits for you.",
  running: "No session is running.",
  trouble: "No session has failed or stalled.",
  all: "No session is here yet.",
};

function Nothing(props: { filter: Filter; searched: boolean; looking: boolean }) {
  const none = () => !props.searched && (props.filter === "open" || props.filter === "all");
  return (
    <div class="empty" role="status">
      <Show when={world.loaded && !props.looking} fallback={<p>{world.loaded ? "Looking among all sessions …" : "Loading …"}</p>}>
        <p>{props.searched ? "Nothing found." : NOTHING[props.filter]}</p>
        <Show when={none() && may("participant")}>
          <a class="button primary" href="/new">
            Start one
          </a>
        </Show>
      </Show>
    </div>
  );
}
