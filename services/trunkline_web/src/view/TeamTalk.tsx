import { createMemo, createSignal, For, Index, Show } from "solid-js";
import { ago, visible } from "../model/format";
import { threadsOf, type Message, type Team, type TeamRequest, type Thread } from "../model/team";
import type { TeamView } from "../store/team";
import { say } from "../store/world";
import { now } from "./clock";

const nameOf = (one: string) => (one === "team-lead" ? "lead" : visible(one));

/** What the members say to each other, by who talks with whom. */
export function Talk(props: { view: TeamView; team: Team }) {
  const threads = createMemo(() => threadsOf(props.view.messages()));
  return (
    <section class="talk" aria-labelledby="team-talk">
      <h2 id="team-talk">Messages</h2>
      <Index each={threads()} fallback={<p class="hint">Nothing has been said yet.</p>}>
        {(thread, at) => <OneThread thread={thread()} open={at < 3} />}
      </Index>
      <Show when={props.view.older()}>
        <button type="button" class="quiet" onClick={() => void props.view.loadOlder().catch(say)}>
          Older messages
        </button>
      </Show>
      <Show when={props.team.rest.messages}>
        {(more) => <p class="hint">{more()} older ones are on the log only: the sessions have them.</p>}
      </Show>
    </section>
  );
}

function OneThread(props: { thread: Thread; open: boolean }) {
  const who = () => {
    const [one = "", other] = props.thread.who.map(nameOf);
    return other === undefined ? `${one} to all` : `${one} and ${other}`;
  };
  return (
    <details class="thread" open={props.open}>
      <summary>
        <b>{who()}</b>
        <span class="many">{props.thread.messages.length}</span>
        <time>{ago(props.thread.messages.at(-1)?.time, now())}</time>
      </summary>
      <ol aria-label={`Messages of ${who()}`}>
        <For each={props.thread.messages}>{(one) => <Said one={one} second={one.from !== props.thread.who[0]} />}</For>
      </ol>
    </details>
  );
}

function Said(props: { one: Message; second: boolean }) {
  return (
    <li classList={{ second: props.second }}>
      <p class="from">
        <b>{nameOf(props.one.from)}</b>
        <Show when={props.one.summary}>{(words) => <span>{visible(words())}</span>}</Show>
        <time dateTime={props.one.time}>{ago(props.one.time, now())}</time>
      </p>
      <p class="words" dir="auto">
        {visible(props.one.content ?? "")}
      </p>
    </li>
  );
}

const KINDS: Record<TeamRequest["kind"], string> = { shutdown: "Shutdown", plan: "Plan", permission: "Permission" };

/** What members wait for that the lead answers, and what it has answered. */
export function Requests(props: { team: Team }) {
  const [all, setAll] = createSignal(false);
  const answered = () => [...props.team.answered].reverse();
  const shown = () => (all() ? answered() : answered().slice(0, 8));
  return (
    <section class="requests" aria-labelledby="team-requests">
      <h2 id="team-requests">Plans and shutdowns</h2>
      <Show
        when={props.team.requests.length + props.team.answered.length > 0}
        fallback={<p class="hint">No member has waited for its lead.</p>}
      >
        <ul>
          <For each={[...props.team.requests, ...shown()]}>{(one) => <OneRequest one={one} />}</For>
        </ul>
      </Show>
      <Show when={shown().length < answered().length}>
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          {answered().length - shown().length} older ones
        </button>
      </Show>
    </section>
  );
}

function OneRequest(props: { one: TeamRequest }) {
  const outcome = () => (props.one.approve == null ? "open" : props.one.approve ? "approved" : "refused");
  return (
    <li class="request" data-outcome={outcome()}>
      <p class="from">
        <b>
          {KINDS[props.one.kind]} · {visible(props.one.member)}
        </b>
        <span class="chip">{outcome() === "open" ? (props.one.kind === "shutdown" ? "asked of the member" : "waits for the lead") : outcome()}</span>
        <time>{ago(props.one.answered ?? props.one.asked, now())}</time>
      </p>
      <Show when={props.one.tool}>{(tool) => <p>wants to use {visible(tool())}</p>}</Show>
      <Show when={props.one.reason}>{(words) => <p dir="auto">{visible(words())}</p>}</Show>
      <Show when={props.one.plan}>{(words) => <pre class="plan-words">{visible(words())}</pre>}</Show>
      <Show when={props.one.feedback}>{(words) => <p dir="auto">{visible(words())}</p>}</Show>
    </li>
  );
}
