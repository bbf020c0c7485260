import { createEffect, createMemo, createResource, createSignal, createUniqueId, For, on, Show } from "solid-js";
import { newCommandId, newSessionId } from "trunkline-client";
import { isClosed } from "../client/connection";
import type { Block, Capabilities, Choice, Thinking } from "../client/protocol";
import { go } from "../route";
import { submit } from "../store/outbox";
import { read, write } from "../store/kept";
import { connection, link, may, say, sessions } from "../store/world";

const DRAFT = "draft.new";

interface Way {
  adapter: string;
  way?: string;
  protocol?: string | null;
  profile?: string | null;
  version?: string | null;
  error?: { message: string } | null;
  login?: string;
  signed_in?: boolean;
  capabilities?: Capabilities | null;
}

interface Agent {
  name: string;
  title?: string | null;
  ways: Way[];
}

const usable = (agent: Agent): Way | undefined => agent.ways.find((way) => !way.error);

/** Starting a session: the agents that are there, and what each of them lets one choose. */
export function NewSession(props: { cwd?: string }) {
  const [busy, setBusy] = createSignal(false);
  const [error, setError] = createSignal("");
  // What can't be told without a connection is asked for when there is one.
  const isOpen = () => link().state === "open" && may("participant");
  const fail = (problem: unknown): undefined => {
    if (!isClosed(problem)) setError(problem instanceof Error ? problem.message : String(problem));
  };
  const [hosts] = createResource(isOpen, async () => {
    const { workers } = await connection.call("worker.list").catch(() => ({ workers: [] }));
    return [...new Map(workers.map((one) => [one.host, one.hostname ?? one.host]))];
  });
  const [wanted, setHost] = createSignal<string>();
  const [told] = createResource(
    () => isOpen() && { host: wanted() },
    (asked) => connection.call("agent.list", asked).catch(fail),
  );
  const host = () => told()?.host;
  const agents = () =>
    told()?.agents.toSorted((a, b) => Number(!usable(a)) - Number(!usable(b)) || a.name.localeCompare(b.name));
  const directories = createMemo(() => [...new Set(sessions().map((state) => state.cwd ?? ""))].filter(Boolean));
  const [agent, setAgent] = createSignal("");
  const [written, setCwd] = createSignal(props.cwd);
  createEffect(on(() => props.cwd, setCwd, { defer: true }));
  const cwd = () => written() ?? directories()[0] ?? "";
  const [text, setText] = createSignal(read(DRAFT, ""));
  createEffect(() => write(DRAFT, text()));
  const [title, setTitle] = createSignal("");
  const [model, setModel] = createSignal("");
  const [mode, setMode] = createSignal("");
  const [thinking, setThinking] = createSignal<Thinking | "">("");
  /** What was asked for, and as which session: asked for again after a lost answer it is the same one. */
  let last = { asked: "", session: "" };

  createEffect(() => {
    const able = agents()?.filter(usable);
    if (able?.length && !able.some((one) => one.name === agent())) setAgent(able[0]!.name);
  });
  const chosen = createMemo(() => agents()?.find((one) => one.name === agent()));
  const way = createMemo(() => {
    const found = chosen();
    return found && (usable(found) ?? found.ways[0]);
  });
  const honours = (option: string): boolean => way()?.capabilities?.options?.includes(option) ?? false;
  /** What the agent offered in its other sessions: before one has begun nobody else can say. */
  const known = (list: "models" | "modes"): Choice[] => {
    const mine = sessions().find((state) => (state.agent ?? state.adapter) === agent() && state[list].length > 0);
    return mine?.[list] ?? [];
  };
  const [found] = createResource(() => ({ path: cwd(), host: host() }), browse);

  async function start(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setError("");
    const options = {
      ...(honours("model") && model().trim() && { model: model().trim() }),
      ...(honours("mode") && mode().trim() && { mode: mode().trim() }),
      ...(honours("thinking") && thinking() && { thinking: thinking() || undefined }),
    };
    const wish = { cwd: cwd().trim(), host: host(), agent: agent(), ...(title().trim() && { title: title().trim() }), options };
    const asked = JSON.stringify(wish);
    if (last.asked !== asked) last = { asked, session: newSessionId() };
    const { session } = last;
    try {
      const { notice } = await connection.call("session.create", { session, ...wish });
      if (notice) say(notice);
      if (text().trim()) {
        const content: Block[] = [{ type: "text", text: text().trim() }];
        submit({ id: newCommandId(), session, content, delivery: "auto" });
      }
      setText("");
      go(`/session/${session}`, true);
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : String(problem));
      if (!isClosed(problem)) last.asked = "";
    } finally {
      setBusy(false);
    }
  }

  return (
    <section class="page new" aria-labelledby="new">
      <header class="head">
        <h1 id="new">New session</h1>
      </header>
      <Show when={may("participant")} fallback={<p class="hint">A viewer starts no sessions: ask the owner for another role.</p>}>
        <form onSubmit={start}>
          <Show when={(hosts() ?? []).length > 1}>
            <label>
              Host
              <select value={host()} onChange={(event) => setHost(event.currentTarget.value)}>
                <For each={hosts()}>{([id, name]) => <option value={id}>{name}</option>}</For>
              </select>
            </label>
          </Show>
          <fieldset class="agents">
            <legend>Agent</legend>
            <For
              each={agents()?.filter(usable)}
              fallback={<p class="hint">{told.loading || !isOpen() ? "Looking for agents …" : "No agent is installed on this host."}</p>}
            >
              {(one) => (
                <label class="choice">
                  <input type="radio" name="agent" checked={agent() === one.name} onChange={() => setAgent(one.name)} />
                  <span>
                    <b>{one.title ?? one.name}</b>
                    <small>{aboutOf(one)}</small>
                  </span>
                </label>
              )}
            </For>
          </fieldset>
          <Missing agents={agents()?.filter((one) => !usable(one)) ?? []} />
          <label>
            Directory
            <input
              list="directories"
              required
              placeholder="/home/me/project"
              spellcheck={false}
              autocapitalize="off"
              value={cwd()}
              onInput={(event) => setCwd(event.currentTarget.value)}
            />
            <datalist id="directories">
              <For each={[...new Set([...directories(), ...(found() ?? [])])]}>{(path) => <option value={path} />}</For>
            </datalist>
          </label>
          <label>
            What is to be done
            <textarea rows="4" value={text()} placeholder="You can write it later, too" onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          <div class="settings">
            <Show when={honours("model")}>
              <Suggested label="Model" value={model()} choices={known("models")} change={setModel} />
            </Show>
            <Show when={honours("mode") && may("approver")}>
              <Suggested label="Mode" value={mode()} choices={known("modes")} change={setMode} />
            </Show>
            <Show when={honours("thinking")}>
              <label>
                Thinking
                <select onChange={(event) => setThinking(event.currentTarget.value as Thinking | "")}>
                  <option value="">the agent's own</option>
                  <For each={["off", "low", "medium", "high", "max"]}>{(level) => <option value={level}>{level}</option>}</For>
                </select>
              </label>
            </Show>
          </div>
          <details>
            <summary>More</summary>
            <label>
              Title
              <input maxlength="200" value={title()} onInput={(event) => setTitle(event.currentTarget.value)} />
            </label>
          </details>
          <Show when={error()}>
            <p class="error" role="alert">
              {error()}
            </p>
          </Show>
          <div class="buttons">
            <button class="primary" disabled={busy() || !way() || !cwd().trim()}>
              {busy() ? "Starting …" : "Start"}
            </button>
          </div>
        </form>
      </Show>
    </section>
  );
}

/** A word that the agent knows, of those that it was heard to offer or another one. */
function Suggested(props: { label: string; value: string; choices: Choice[]; change(value: string): void }) {
  const list = createUniqueId();
  return (
    <label>
      {props.label}
      <input
        list={list}
        placeholder="the agent's own"
        spellcheck={false}
        autocapitalize="off"
        value={props.value}
        onInput={(event) => props.change(event.currentTarget.value)}
      />
      <datalist id={list}>
        <For each={props.choices}>{(one) => <option value={one.id}>{one.name ?? one.id}</option>}</For>
      </datalist>
    </label>
  );
}

/** The agents that can't run here, and why. */
function Missing(props: { agents: Agent[] }) {
  return (
    <Show when={props.agents.length > 0}>
      <details>
        <summary>{props.agents.length === 1 ? "1 more agent is" : `${props.agents.length} more agents are`} not installed here</summary>
        <ul class="missing">
          <For each={props.agents}>
            {(one) => (
              <li>
                <b>{one.title ?? one.name}</b> <small>{aboutOf(one)}</small>
              </li>
            )}
          </For>
        </ul>
      </details>
    </Show>
  );
}

function aboutOf(agent: Agent): string {
  const way = usable(agent);
  if (way === undefined) return agent.ways[0]?.error?.message ?? "can't be used";
  const login = way.login && way.signed_in === false ? `, not signed in: ${way.login}` : "";
  return [way.version, way.protocol ?? way.way].filter(Boolean).join(" · ") + login;
}

/** The directories in one that is being written, for completion; nothing where the host does not tell. */
async function browse({ path, host }: { path: string; host?: string }): Promise<string[]> {
  if (!path.endsWith("/")) return [];
  const listed = await connection.call("host.directories", { directory: path, host }).catch(() => undefined);
  return (listed?.directories ?? []).map((name) => `${listed?.path.replace(/\/$/, "")}/${name}`);
}
