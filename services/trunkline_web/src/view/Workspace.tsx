import { createMemo, For, Show } from "solid-js";
import { money, visible } from "../model/format";
import { kindsOf } from "../model/overview";
import { may, openAsks, sessions, world } from "../store/world";
import { AskList } from "./AskList";
import { Icon } from "./Icon";
import { wordOf } from "./Status";

/** A directory: how its sessions are, what waits in it, and a new one. The list beside it has the sessions. */
export function Workspace(props: { id: string }) {
  const here = createMemo(() => sessions().filter((state) => state.workspace === props.id));
  const asks = createMemo(() => openAsks().filter((ask) => world.sessions[ask.session]?.workspace === props.id));
  const cwd = () => here()[0]?.cwd ?? "";
  const kinds = createMemo(() => {
    const statuses: Record<string, number> = {};
    for (const state of here()) {
      const status = wordOf(state) === "failed" ? "failed" : state.open_asks.length > 0 ? "waiting" : state.status;
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
    return kindsOf(statuses);
  });
  const cost = () => here().reduce((sum, state) => sum + (state.cost_usd ?? 0), 0);
  return (
    <section class="page workspace" aria-labelledby="workspace">
      <header class="head">
        <div class="title">
          <h1 id="workspace" class="path">
            {visible(cwd() || "Directory")}
          </h1>
          <p class="meta">
            <span>{here().length === 1 ? "1 session" : `${here().length} sessions`}</span>
            <Show when={cost() > 0}>
              <span>{money(cost())}</span>
            </Show>
          </p>
        </div>
        <Show when={may("participant")}>
          <a class="button primary" href={`/new?cwd=${encodeURIComponent(cwd())}`}>
            <Icon name="plus" />
            New session here
          </a>
        </Show>
      </header>
      <ul class="kinds" aria-label="Sessions by status">
        <For each={kinds()}>
          {(kind) => (
            <li data-tone={kind.tone} data-none={kind.many === 0 ? "" : undefined}>
              <b>{kind.many}</b> {kind.name}
            </li>
          )}
        </For>
      </ul>
      <Show when={asks().length > 0}>
        <h2>Waiting for you</h2>
        <AskList asks={asks()} link live="polite" />
      </Show>
    </section>
  );
}
