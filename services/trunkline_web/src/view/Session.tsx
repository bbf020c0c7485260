import { createMemo, For, onCleanup, Show } from "solid-js";
import type { Choice, SessionState, Thinking } from "../client/protocol";
import { count, money, shortPath, unturned, visible } from "../model/format";
import { go } from "../route";
import { watch, type SessionView } from "../store/session";
import { connection, hello, may, say, world } from "../store/world";
import { AskList } from "./AskList";
import { Composer } from "./Composer";
import { Icon } from "./Icon";
import { engine } from "./Markdown";
import { SessionMenu } from "./SessionMenu";
import { Status } from "./Status";
import { Transcript } from "./Transcript";

/** A session: live, or with `at` as it was then. */
export function Session(props: { id: string; at?: string }) {
  // It comes while the first page does.
  void engine();
  const view = createMemo<SessionView>(() => {
    const made = watch(props.id, props.at);
    onCleanup(() => made.end());
    return made;
  });
  const state = () => view().state.now ?? world.sessions[props.id];
  /** The log's text comes before the state that says so. */
  const writing = () => {
    const last = view().transcript.rows.at(-1);
    return last?.kind === "assistant" && last.parts.some((part) => part.open);
  };
  const asks = createMemo(() =>
    Object.values(world.asks).filter((ask) => ask.session === props.id && ask.status === "open"),
  );
  return (
    <section class="session" aria-label={state()?.title ?? "Session"}>
      <Show when={state()} fallback={<Failure view={view()} />}>
        {(known) => <Head state={known()} view={view()} />}
      </Show>
      <Show when={view().gap()}>
        <p class="banner" data-tone="bad" role="status">
          Not everything could be given ({view().gap()}): what is shown begins anew from the log.
        </p>
      </Show>
      <Show when={props.at}>
        <p class="banner" role="status">
          <Icon name="clock" />
          As it was then; nothing here is live.
          <a href={`/session/${props.id}`}>Back to now</a>
        </p>
      </Show>
      <Transcript view={view()} state={props.at === undefined ? state() : undefined} />
      <Show when={!props.at}>
        <Show when={asks().length > 0}>
          <AskList asks={asks()} class="asks" live="assertive" after={write} />
        </Show>
        <Others view={view()} />
        <Show when={state()}>{(known) => <Foot state={known()} writing={writing()} />}</Show>
      </Show>
    </section>
  );
}

/** The keyboard goes to where one writes; on a touch screen that would open one. */
const write = (): void => document.querySelector<HTMLElement>(matchMedia("(pointer: coarse)").matches ? ".scroller" : ".write textarea")?.focus();

function Failure(props: { view: SessionView }) {
  return (
    <p class="banner" role="status">
      <a class="back" href="/" aria-label="All sessions">
        <Icon name="back" />
      </a>
      {props.view.failure() || "…"}
    </p>
  );
}

function Head(props: { state: SessionState; view: SessionView }) {
  const state = () => props.state;
  const able = () => state().capabilities ?? {};
  const fill = () => {
    const { used, size } = state().context;
    return used && size ? Math.min(100, Math.round((100 * used) / size)) : undefined;
  };
  return (
    <header class="head">
      <a class="back" href="/" aria-label="All sessions">
        <Icon name="back" />
      </a>
      <div class="title">
        <h1 dir="auto">{unturned(state().title ?? "New session")}</h1>
        <p class="meta">
          <Status state={state()} />
          <span class="agent">{state().agent ?? state().adapter}</span>
          <span class="path" title={state().cwd ?? ""}>
            {visible(shortPath(state().cwd, 28))}
          </span>
          <Show when={fill() !== undefined}>
            <span title={`${count(state().context.used ?? 0)} of ${count(state().context.size ?? 0)} tokens of context`}>
              {fill()} % context
            </span>
          </Show>
          <Show when={state().cost_usd}>{(cost) => <span>{money(cost())}</span>}</Show>
        </p>
      </div>
      <div class="controls">
        <Show when={able().model_switching && may("participant")}>
          <Choose
            label="Model"
            choices={state().models}
            value={state().model}
            change={(model) => connection.call("session.set_model", { session: state().session, model }).catch(say)}
          />
        </Show>
        <Show when={able().mode_switching && may("approver")}>
          <Choose
            label="Mode"
            choices={state().modes}
            value={state().mode}
            change={(mode) => connection.call("session.set_mode", { session: state().session, mode }).catch(say)}
          />
        </Show>
        <Show when={able().thinking && may("participant")}>
          <Choose
            label="Thinking"
            choices={["off", "low", "medium", "high", "max"].map((id) => ({ id }))}
            value={state().thinking}
            change={(level) => connection.call("session.set_thinking", { session: state().session, level: level as Thinking }).catch(say)}
          />
        </Show>
        <Show when={able().terminal || state().terminal}>
          <a class="button" href={`/terminal/${state().session}`} title="Terminal" aria-label="Terminal">
            <Icon name="terminal" />
          </a>
        </Show>
        <Show when={may("participant")}>
          <SessionMenu state={state()} />
        </Show>
      </div>
    </header>
  );
}

function Choose(props: { label: string; choices: Choice[]; value?: string | null; change(id: string): void }) {
  const choices = () =>
    props.value && !props.choices.some((one) => one.id === props.value)
      ? [{ id: props.value }, ...props.choices]
      : props.choices;
  return (
    <Show when={props.choices.length > 0}>
      <label class="choose">
        <span>{props.label}</span>
        <select aria-label={props.label} onChange={(event) => props.change(event.currentTarget.value)}>
          <Show when={!props.value}>
            <option value="" selected disabled>
              {props.label}
            </option>
          </Show>
          <For each={choices()}>
            {(one: Choice) => (
              <option value={one.id} selected={one.id === props.value} title={one.description ?? undefined}>
                {one.name ?? one.id}
              </option>
            )}
          </For>
        </select>
      </label>
    </Show>
  );
}

/** Who else is here. */
function Others(props: { view: SessionView }) {
  const others = createMemo(() => {
    const found = new Map<string, boolean>();
    for (const one of props.view.present()) {
      if (one.actor === hello()?.actor && one.doing !== "typing") continue;
      if (one.actor === hello()?.actor) continue;
      found.set(one.actor, one.doing === "typing" || (found.get(one.actor) ?? false));
    }
    return [...found];
  });
  return (
    <Show when={others().length > 0}>
      <p class="others" aria-live="polite">
        <Icon name="users" />
        <For each={others()}>{([actor, typing]) => <span>{`${visible(actor)} ${typing ? "types …" : "watches"}`}</span>}</For>
      </p>
    </Show>
  );
}

function Foot(props: { state: SessionState; writing: boolean }) {
  return (
    <Show when={props.state.closed} fallback={<Composer state={props.state} writing={props.writing} />}>
      {(closed) => (
        <div class="composer closed">
          <p>The session is closed ({closed().reason}).</p>
          <Show when={may("participant") && props.state.capabilities?.resume !== false}>
            <button
              type="button"
              onClick={() => connection.call("session.resume", { session: props.state.session }).then(() => go(`/session/${props.state.session}`), say)}
            >
              Resume
            </button>
          </Show>
        </div>
      )}
    </Show>
  );
}
