import { createMemo, createSignal, For, onCleanup, Show } from "solid-js";
import type { Choice, Role, SessionState, Thinking } from "../client/protocol";
import { closing } from "../model/closing";
import { count, money, shortPath, unturned, visible } from "../model/format";
import { showsTerminal } from "../model/terminal";
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
      <Show when={state()} fallback={<Unknown view={view()} />}>
        {(known) => <Head state={known()} live={props.at === undefined} />}
      </Show>
      <Show when={view().failure()}>
        <p class="banner" data-tone="bad" role="alert">
          {visible(view().failure())}
        </p>
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

/** The head of a session that is not known yet, or to nobody. */
function Unknown(props: { view: SessionView }) {
  return (
    <header class="head">
      <a class="back" href="/" aria-label="Back">
        <Icon name="back" />
      </a>
      <div class="title">
        <h1>{props.view.failure() ? "This session can't be shown" : "…"}</h1>
      </div>
    </header>
  );
}

function Head(props: { state: SessionState; live: boolean }) {
  const state = () => props.state;
  const able = () => state().capabilities ?? {};
  const isOpen = () => !state().closed;
  const fill = () => {
    const { used, size } = state().context;
    return used && size ? Math.min(100, Math.round((100 * used) / size)) : undefined;
  };
  return (
    <header class="head">
      <a class="back" href="/" aria-label="Back">
        <Icon name="back" />
      </a>
      <div class="title">
        <h1 dir="auto">{unturned(state().title ?? "New session")}</h1>
        <p class="meta">
          <Show when={props.live}>
            <Status state={state()} />
          </Show>
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
      <div class="controls" hidden={!props.live}>
        <Choose
          label="Model"
          role="participant"
          open={isOpen() && able().model_switching === true}
          choices={state().models}
          value={state().model}
          change={(model) => connection.call("session.set_model", { session: state().session, model })}
        />
        <Choose
          label="Mode"
          role="approver"
          open={isOpen() && able().mode_switching === true}
          choices={state().modes}
          value={state().mode}
          change={(mode) => connection.call("session.set_mode", { session: state().session, mode })}
        />
        <Choose
          label="Thinking"
          role="participant"
          open={isOpen() && able().thinking === true}
          choices={["off", "low", "medium", "high", "max"].map((id) => ({ id }))}
          value={state().thinking}
          change={(level) => connection.call("session.set_thinking", { session: state().session, level: level as Thinking })}
        />
        <Show when={showsTerminal(state())}>
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

/** What can be chosen while the session is `open`, by who has the `role`; for all others it is what was chosen. */
function Choose(props: { label: string; role: Role; open: boolean; choices: Choice[]; value?: string | null; change(id: string): Promise<unknown> }) {
  const name = () => props.choices.find((one) => one.id === props.value)?.name ?? props.value;
  const choices = () =>
    props.value && !props.choices.some((one) => one.id === props.value)
      ? [{ id: props.value }, ...props.choices]
      : props.choices;
  return (
    <Show
      when={props.open && may(props.role) && props.choices.length > 0}
      fallback={
        <Show when={props.value}>
          <span class="chip chosen" title={props.open && !may(props.role) ? `Changing it needs the role ${props.role}.` : undefined}>
            <span class="visually-hidden">{props.label}: </span>
            {visible(name() ?? "")}
          </span>
        </Show>
      }
    >
      <label class="choose">
        <span>{props.label}</span>
        <select
          aria-label={props.label}
          onChange={async (event) => {
            const place = event.currentTarget;
            try {
              await props.change(place.value);
            } catch (error) {
              place.value = props.value ?? ""; // it is still that
              say(error);
            }
          }}
        >
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
  const [busy, setBusy] = createSignal(false);
  async function resume(): Promise<void> {
    setBusy(true);
    await connection.call("session.resume", { session: props.state.session }).catch(say);
    setBusy(false);
  }
  return (
    <Show when={props.state.closed} fallback={<Composer state={props.state} writing={props.writing} />}>
      {(closed) => (
        <div class="composer closed">
          <p>{closing(closed()).words === "closed" ? "The session is closed." : `The session is closed: ${visible(closing(closed()).words)}.`}</p>
          <Show when={may("participant") && props.state.capabilities?.resume !== false}>
            <button type="button" disabled={busy()} onClick={() => void resume()}>
              {busy() ? "Resuming …" : "Resume"}
            </button>
          </Show>
        </div>
      )}
    </Show>
  );
}
