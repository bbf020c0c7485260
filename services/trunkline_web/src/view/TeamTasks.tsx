import { createMemo, createResource, createSignal, For, Index, Match, Show, Switch } from "solid-js";
import { ago, visible } from "../model/format";
import type { Drawn } from "../model/layout";
import { columnsOf, placed, type Placed, type Team } from "../model/team";
import { now } from "./clock";

/** Beyond this a drawing shows nothing any more, and takes long to lay out. */
const MOST_DRAWN = 150;
const STATES: Record<Placed["column"], string> = {
  ready: "ready",
  blocked: "blocked",
  in_progress: "in progress",
  completed: "completed",
};

type Way = "graph" | "columns";

/** What there is to do: drawn with what waits for what beside a list that says the same, or in columns. */
export function Tasks(props: { team: Team }) {
  const tasks = createMemo(() => placed(props.team.tasks));
  const linked = () => tasks().some((one) => one.after.length > 0);
  const [chosen, setChosen] = createSignal<Way>();
  const way = () => chosen() ?? (linked() && tasks().length <= MOST_DRAWN ? "graph" : "columns");
  return (
    <section class="tasks" aria-labelledby="team-tasks">
      <header class="bar">
        <h2 id="team-tasks">Tasks</h2>
        <Show when={tasks().length > 0}>
          <div class="filters" role="group" aria-label="How tasks are shown">
            <For each={[["graph", "Graph"], ["columns", "Columns"]] as [Way, string][]}>
              {([value, name]) => (
                <button type="button" aria-pressed={way() === value} onClick={() => setChosen(value)}>
                  {name}
                </button>
              )}
            </For>
          </div>
        </Show>
      </header>
      <Switch fallback={<p class="hint">There are no tasks yet.</p>}>
        <Match when={tasks().length > 0 && way() === "graph"}>
          <Graph tasks={tasks()} />
        </Match>
        <Match when={tasks().length > 0}>
          <Columns tasks={tasks()} />
        </Match>
      </Switch>
      <Show when={props.team.rest.tasks}>{(more) => <p class="hint">{more()} older tasks are not shown.</p>}</Show>
    </section>
  );
}

function Columns(props: { tasks: Placed[] }) {
  return (
    <div class="columns">
      <For each={columnsOf(props.tasks)}>
        {(column) => (
          <section class="column" data-column={column.column} aria-label={`${column.name}, ${column.tasks.length}`}>
            <h3>
              {column.name} <span class="many">{column.tasks.length}</span>
            </h3>
            <ul>
              <For each={column.tasks}>{(one) => <li><OneTask one={one} /></li>}</For>
            </ul>
          </section>
        )}
      </For>
    </div>
  );
}

function Graph(props: { tasks: Placed[] }) {
  // the library that lays it out comes with the first graph
  const [library] = createResource(() => import("../model/layout"));
  const drawn = createMemo<Drawn | undefined>(() =>
    props.tasks.length <= MOST_DRAWN ? library()?.layout(props.tasks) : undefined,
  );
  const [at, setAt] = createSignal("");
  let list: HTMLUListElement | undefined;
  function show(id: string): void {
    const found = list?.querySelector<HTMLDetailsElement>(`[data-task="${CSS.escape(id)}"] details`);
    if (!found) return;
    found.open = true;
    found.querySelector("summary")?.focus();
  }
  return (
    <div class="graph">
      <Show
        when={props.tasks.length <= MOST_DRAWN}
        fallback={<p class="hint">{props.tasks.length} tasks are too many to draw: the list has them.</p>}
      >
        <div class="drawing" tabindex="0" role="group" aria-label="Tasks by what they wait for; the list says the same">
          <Show when={drawn()}>{(known) => <Drawing drawn={known()} tasks={props.tasks} at={at()} setAt={setAt} show={show} />}</Show>
        </div>
      </Show>
      <div>
        <Show when={(drawn()?.cycles.length ?? 0) > 0}>
          <ul class="cycles">
            <For each={drawn()?.cycles}>
              {(cycle) => (
                <li>
                  {cycle.length === 1
                    ? `#${cycle[0]} waits for itself`
                    : `${cycle.map((id) => `#${id}`).join(", ")} wait for each other`}
                </li>
              )}
            </For>
          </ul>
        </Show>
        <ul class="task-list" ref={list}>
          <Index each={props.tasks}>
            {(one) => (
              <li
                data-task={one().task.id}
                data-at={at() === one().task.id ? "" : undefined}
                onPointerEnter={() => setAt(one().task.id)}
                onPointerLeave={() => setAt("")}
                onFocusIn={() => setAt(one().task.id)}
                onFocusOut={() => setAt("")}
              >
                <OneTask one={one()} />
              </li>
            )}
          </Index>
        </ul>
      </div>
    </div>
  );
}

function Drawing(props: { drawn: Drawn; tasks: Placed[]; at: string; setAt(id: string): void; show(id: string): void }) {
  const byId = createMemo(() => new Map(props.tasks.map((one) => [one.task.id, one])));
  const open = (id: string) => byId().get(id)?.column !== "completed";
  return (
    <div class="canvas" style={{ width: `${props.drawn.width}px`, height: `${props.drawn.height}px` }}>
      <svg width={props.drawn.width} height={props.drawn.height} aria-hidden="true">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        <For each={props.drawn.edges}>
          {(edge) => (
            <path
              class="edge"
              d={edge.path}
              marker-end="url(#arrow)"
              data-open={open(edge.from) ? "" : undefined}
              data-at={props.at === edge.from || props.at === edge.to ? "" : undefined}
            />
          )}
        </For>
      </svg>
      <Index each={props.drawn.nodes}>
        {(node) => (
          <Show when={byId().get(node().id)}>
            {(one) => (
              <button
                type="button"
                class="node"
                data-column={one().column}
                data-at={props.at === node().id ? "" : undefined}
                style={{ left: `${node().x}px`, top: `${node().y}px` }}
                aria-label={`Task ${node().id}, ${STATES[one().column]}: ${visible(one().task.subject ?? "")}`}
                onClick={() => props.show(node().id)}
                onPointerEnter={() => props.setAt(node().id)}
                onPointerLeave={() => props.setAt("")}
              >
                <span class="subject" dir="auto">
                  <span class="number">#{node().id}</span> {visible(one().task.subject ?? "")}
                </span>
                <span class="state">
                  {STATES[one().column]}
                  {one().task.owner ? ` · ${visible(one().task.owner ?? "")}` : ""}
                </span>
              </button>
            )}
          </Show>
        )}
      </Index>
    </div>
  );
}

const names = (ids: string[]): string => ids.map((id) => `#${id}`).join(", ");

function OneTask(props: { one: Placed }) {
  const task = () => props.one.task;
  return (
    <details class="task" data-column={props.one.column}>
      <summary>
        <span class="mark" aria-hidden="true" />
        <span class="subject" dir="auto">
          <span class="number">#{task().id}</span> {visible(task().subject ?? "no subject")}
        </span>
        <span class="state">
          {STATES[props.one.column]}
          <Show when={task().owner}>{(owner) => <> · {visible(owner())}</>}</Show>
          <Show when={props.one.waits.length > 0}> · waits for {names(props.one.waits)}</Show>
        </span>
      </summary>
      <div class="inside">
        <Show when={task().description}>
          <p dir="auto">{visible(task().description ?? "")}</p>
        </Show>
        <Show when={props.one.after.length > 0}>
          <p>Needs {names(props.one.after)}</p>
        </Show>
        <Show when={props.one.before.length > 0}>
          <p>Needed by {names(props.one.before)}</p>
        </Show>
        <p class="hint">
          changed {ago(task().updated, now())} ago
          <Show when={task().by}>{(by) => <> by {visible(by())}</>}</Show>
        </p>
      </div>
    </details>
  );
}
