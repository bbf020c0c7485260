import { createSignal, For, onCleanup, Show } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import { isClosed } from "../client/connection";
import { ago, count, money, shortPath, visible } from "../model/format";
import { kindsOf, linksOf, sparkline, type Overview as Told, type Spend } from "../model/overview";
import { connection, hello, link, may, world } from "../store/world";
import "../style/overview.css";

/** Rates and lags have no events of their own: they are looked at again, while somebody looks. */
const LOOK_MS = 2_000;

/** Everything at a glance, for who runs it. */
export function Overview() {
  const [now, setNow] = createStore<{ told?: Told }>({});
  const [failure, setFailure] = createSignal("");
  const [clock, setClock] = createSignal(Date.now());
  let timer: ReturnType<typeof setTimeout> | undefined;
  async function look(): Promise<void> {
    clearTimeout(timer);
    if (!document.hidden && link().state === "open") {
      try {
        setNow("told", reconcile(await connection.call("overview.get"), { key: "worker" }));
        setFailure("");
      } catch (error) {
        if (!isClosed(error)) setFailure(error instanceof Error ? error.message : String(error));
      }
      setClock(Date.now());
    }
    if (!ended) timer = setTimeout(() => void look(), LOOK_MS);
  }
  let ended = false;
  onCleanup(() => {
    ended = true;
    clearTimeout(timer);
  });
  if (may("owner")) void look();
  return (
    <section class="page overview" aria-labelledby="overview">
      <header class="head">
        <h1 id="overview">Overview</h1>
        <Show when={now.told}>
          {(told) => (
            <p class="meta">
              <span>Trunkline {told().version}</span>
              <For each={linksOf(told().dashboards)}>
                {([name, url]) => (
                  <a href={url} target="_blank" rel="noreferrer">
                    {visible(name)}
                  </a>
                )}
              </For>
            </p>
          )}
        </Show>
      </header>
      <Show when={!may("owner")}>
        <p class="hint">The overview is for owners; your role is {hello()?.role}.</p>
      </Show>
      <Show when={failure()}>
        <p class="error" role="alert">
          {failure()}
        </p>
      </Show>
      <Show when={now.told}>{(told) => <Shown told={told()} clock={clock()} />}</Show>
    </section>
  );
}

function Shown(props: { told: Told; clock: number }) {
  const told = () => props.told;
  const oldest = () => told().asks.oldest;
  const behind = () => Math.max(0, ...told().projections.map((one) => one.behind));
  const frozen = () => told().projections.reduce((sum, one) => sum + one.frozen, 0);
  return (
    <>
      <ul class="kinds" aria-label="Sessions by status">
        <For each={kindsOf(told().sessions.by_status)}>
          {(kind) => (
            <li data-tone={kind.tone} data-none={kind.many === 0 ? "" : undefined}>
              <b>{count(kind.many)}</b> {kind.name}
            </li>
          )}
        </For>
      </ul>
      <div class="tiles">
        <section class="tile" data-tone={told().asks.open > 0 ? "ask" : undefined} aria-label="Asks">
          <h2>Asks that wait</h2>
          <p class="figure">{told().asks.open}</p>
          <Show when={oldest()} fallback={<p class="hint">Nobody waits.</p>}>
            {(one) => (
              <p class="hint">
                the oldest for {lasting(props.clock - Date.parse(one().time))}:{" "}
                <a href={`/session/${one().session}`}>{world.sessions[one().session]?.title ?? "its session"}</a>
              </p>
            )}
          </Show>
        </section>
        <section class="tile" aria-label="Events">
          <h2>Events a second</h2>
          <p class="figure">{told().events.per_s}</p>
          <svg viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label="Events in each of the last 60 seconds">
            <polyline points={sparkline(told().events.last, 120, 26)} />
          </svg>
        </section>
        <section class="tile" data-tone={told().log.fill >= 0.85 ? "bad" : undefined} aria-label="Log">
          <h2>Log</h2>
          <p class="figure">{Math.round(told().log.fill * 100)} %</p>
          <p class="hint">{count(told().log.messages)} events kept</p>
        </section>
        <section class="tile" data-tone={behind() > 1000 || frozen() > 0 ? "bad" : undefined} aria-label="Projections">
          <h2>Furthest behind</h2>
          <p class="figure">{count(behind())}</p>
          <p class="hint">{frozen() > 0 ? `${frozen()} stand still` : "events, of all projections"}</p>
        </section>
        <section class="tile" data-tone={told().unknown.total > 0 ? "bad" : undefined} aria-label="Drift">
          <h2>Not understood</h2>
          <p class="figure">{count(told().unknown.total)}</p>
          <p class="hint">messages of agents without a translation</p>
        </section>
        <section class="tile" aria-label="Spend">
          <h2>Spent</h2>
          <p class="figure">{money(told().spent.total.cost_usd)}</p>
          <p class="hint">
            {count(told().spent.total.turns)} turns, {count(told().spent.total.input + told().spent.total.output)} tokens
          </p>
        </section>
      </div>
      <div class="halves">
        <Spending title="Spent by agent" id="by-agent" rows={told().spent.by_agent.map((row) => ({ name: row.agent, row }))} />
        <Spending
          title="Spent by directory"
          id="by-directory"
          rows={told().spent.by_workspace.map((row) => ({ name: shortPath(row.cwd, 34), href: `/workspace/${row.workspace}`, row }))}
        />
      </div>
      <section aria-labelledby="workers">
        <h2 id="workers">Workers</h2>
        <ul class="workers">
          <For each={told().workers} fallback={<li class="hint">No worker is there: sessions can't be started.</li>}>
            {(worker) => (
              <li class="member">
                <p class="top">
                  <b>{visible(worker.hostname ?? worker.host)}</b>
                  <span class="status" data-tone={worker.busy > 0 ? "busy" : "rest"}>
                    <span class="dot" aria-hidden="true" />
                    {worker.busy} of {worker.sessions} at work
                  </span>
                </p>
                <p class="about">
                  <span>Trunkline {worker.version ?? "of unknown version"}</span>
                  <Show when={worker.version && worker.version !== told().version}>
                    <span class="odd">another version than the gateway's</span>
                  </Show>
                  <span>up {lasting(props.clock - worker.started * 1000)}</span>
                </p>
                <p class="chips">
                  <For each={worker.agents}>
                    {(agent) => (
                      <span class="chip" data-missing={agent.error ? "" : undefined} title={agent.error ?? undefined}>
                        {visible(agent.name)} {agent.error ? "absent" : visible(agent.version ?? "")}
                      </span>
                    )}
                  </For>
                </p>
              </li>
            )}
          </For>
        </ul>
      </section>
      <div class="halves">
        <section aria-labelledby="projections">
          <h2 id="projections">Projections</h2>
          <div class="wide-table" tabindex="0" role="region" aria-labelledby="projections">
            <table>
              <thead>
                <tr>
                  <th scope="col">Projection</th>
                  <th scope="col">Version</th>
                  <th scope="col">Behind</th>
                  <th scope="col">Standing still</th>
                </tr>
              </thead>
              <tbody>
                <For each={told().projections}>
                  {(one) => (
                    <tr>
                      <th scope="row">{one.name}</th>
                      <td>{one.version}</td>
                      <td>{one.behind}</td>
                      <td>{one.frozen}</td>
                    </tr>
                  )}
                </For>
              </tbody>
            </table>
          </div>
        </section>
        <section aria-labelledby="drift">
          <h2 id="drift">Not understood, by agent</h2>
          <Show when={told().unknown.by_agent.length > 0} fallback={<p class="hint">Every message had a translation.</p>}>
            <div class="wide-table" tabindex="0" role="region" aria-labelledby="drift">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Agent</th>
                    <th scope="col">Version</th>
                    <th scope="col">Messages</th>
                  </tr>
                </thead>
                <tbody>
                  <For each={told().unknown.by_agent}>
                    {(one) => (
                      <tr>
                        <th scope="row">{visible(one.agent)}</th>
                        <td>{visible(one.version)}</td>
                        <td>{one.messages}</td>
                      </tr>
                    )}
                  </For>
                </tbody>
              </table>
            </div>
          </Show>
        </section>
      </div>
    </>
  );
}

function Spending(props: { title: string; id: string; rows: { name: string; href?: string; row: Spend }[] }) {
  const most = () => Math.max(...props.rows.map(({ row }) => row.cost_usd), 0);
  return (
    <section aria-labelledby={props.id}>
      <h2 id={props.id}>{props.title}</h2>
      <ul class="bars">
        <For each={props.rows} fallback={<li class="hint">Nothing yet.</li>}>
          {({ name, href, row }) => (
            <li>
              <span class="name">
                <Show when={href} fallback={visible(name)}>
                  <a href={href}>{visible(name)}</a>
                </Show>
              </span>
              <span class="sum">{money(row.cost_usd)}</span>
              <span class="track" aria-hidden="true">
                <span style={{ width: `${most() > 0 ? (100 * row.cost_usd) / most() : 0}%` }} />
              </span>
              <span class="hint">
                {row.sessions === 1 ? "1 session" : `${row.sessions} sessions`}, {row.turns} turns, {count(row.input + row.output)} tokens
              </span>
            </li>
          )}
        </For>
      </ul>
    </section>
  );
}

function lasting(ms: number): string {
  const passed = ago(new Date(0).toISOString(), Math.max(0, ms));
  return passed === "now" ? `${Math.max(0, Math.round(ms / 1000))} s` : passed;
}
