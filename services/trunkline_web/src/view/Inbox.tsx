import { createSignal, For, Show } from "solid-js";
import type { AskRecord, Requested } from "../client/protocol";
import { ago, visible } from "../model/format";
import { subscribe } from "../store/push";
import { openAsks, world } from "../store/world";
import { now } from "./clock";
import { AskList } from "./AskList";
import { Icon } from "./Icon";

/** All that waits for a decision, the oldest first, and what was decided meanwhile. */
export function Inbox() {
  const ended = () =>
    Object.values(world.asks)
      .filter((ask) => ask.status !== "open")
      .slice(-12)
      .reverse();
  const [permission, setPermission] = createSignal(globalThis.Notification?.permission ?? "denied");
  const notify = async () => {
    setPermission(await Notification.requestPermission());
    await subscribe();
  };
  return (
    <section class="page inbox" aria-labelledby="inbox">
      <header class="head">
        <h1 id="inbox">Waiting for you</h1>
        <Show when={permission() === "default"}>
          <button type="button" onClick={notify}>
            <Icon name="bell" />
            Notify me
          </button>
        </Show>
      </header>
      <AskList asks={openAsks()} link live="polite" fallback={<Empty />} />
      <Show when={openAsks().length > 0}>
        <p class="hint keys">
          <kbd>a</kbd> allow <kbd>d</kbd> deny <kbd>e</kbd> edit <kbd>Tab</kbd> next
        </p>
      </Show>
      <Show when={ended().length > 0}>
        <h2>Decided meanwhile</h2>
        <ul class="ended">
          <For each={ended()}>{(ask) => <Ended ask={ask} />}</For>
        </ul>
      </Show>
    </section>
  );
}

function Empty() {
  return (
    <div class="empty">
      <Icon name="check" />
      <p>Nothing waits for a decision.</p>
    </div>
  );
}

function Ended(props: { ask: AskRecord }) {
  const title = () => world.sessions[props.ask.session]?.title ?? props.ask.session;
  const how = () => {
    const { status, decision } = props.ask;
    if (status !== "decided" || !decision) return status;
    const rule = decision.rule ? ` (rule ${decision.rule})` : "";
    return `${{ allow: "allowed", deny: "denied", answered: "answered" }[decision.behaviour] ?? decision.behaviour} by ${decision.by}${rule}`;
  };
  return (
    <li data-behaviour={props.ask.decision?.behaviour}>
      <b>{visible((props.ask.requested as Requested).name ?? props.ask.kind)}</b> {how()}
      <a href={`/session/${props.ask.session}`}>{title()}</a>
      <time>{ago(props.ask.time, now())}</time>
    </li>
  );
}
